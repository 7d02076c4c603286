/**
 * Copies an observation before the environment continues, because the environment may change its own objects and the
 * recording must show what the policy saw. Plain objects and arrays are copied here, which is faster than `structuredClone`;
 * the rest is left to that. Values that cannot be cloned are returned as they are: recording them throws a clear error.
 */
export function snapshot<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  left = MOST_OBJECTS
  const made = copy(value)
  return (made ?? clone(value)) as T
}

/** Values with more objects than this are left to `structuredClone`: they may contain cycles. */
const MOST_OBJECTS = 10_000
let left = 0

/** Returns undefined if there are too many objects. */
function copy(value: object): object | undefined {
  if (--left < 0) return undefined
  if (Array.isArray(value)) {
    const list: unknown[] = value.slice()
    for (let i = 0; i < list.length; i++) {
      const item = list[i]
      if (typeof item === 'object' && item !== null && (list[i] = copy(item)) === undefined) return undefined
    }
    return list
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return clone(value)
  const made: Record<string, unknown> = { ...value }
  for (const key in made) {
    const item = made[key]
    if (typeof item === 'object' && item !== null && (made[key] = copy(item)) === undefined) return undefined
  }
  return made
}

function clone(value: object): object {
  try {
    return structuredClone(value)
  } catch {
    return value
  }
}
