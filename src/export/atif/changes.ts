/** The difference of a JSON value from another: by key if both are objects, otherwise as a whole. */
export type Changes =
  | { readonly is: unknown }
  /** Null removes a key. */
  | { readonly in: Readonly<Record<string, Changes | null>> }

/** Returns the changes that turn `have` into `wanted`; undefined if there are none. */
export function changesTo(wanted: unknown, have: unknown): Changes | undefined {
  if (!isFields(wanted) || !isFields(have)) return isSame(wanted, have) ? undefined : { is: wanted }
  const changed: [string, Changes | null][] = []
  for (const key of new Set([...Object.keys(wanted), ...Object.keys(have)])) {
    if (!Object.hasOwn(wanted, key)) changed.push([key, null])
    else if (!Object.hasOwn(have, key)) changed.push([key, { is: wanted[key] }])
    else {
      const inside = changesTo(wanted[key], have[key])
      if (inside) changed.push([key, inside])
    }
  }
  return changed.length === 0 ? undefined : { in: Object.fromEntries(changed) }
}

export function withChanges(have: unknown, changes: Changes | undefined): unknown {
  if (changes === undefined) return have
  if ('is' in changes) return changes.is
  const fields = new Map(Object.entries(isFields(have) ? have : {}))
  for (const [key, inside] of Object.entries(changes.in)) {
    if (inside === null) fields.delete(key)
    else fields.set(key, withChanges(fields.get(key), inside))
  }
  return Object.fromEntries(fields)
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, i) => isSame(one, b[i]))
  return isFields(a) && isFields(b) && changesTo(a, b) === undefined
}
