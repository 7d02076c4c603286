/** Whether two values of `readShown` are the same. The order of fields does not matter. */
export function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return Object.is(one, other)
  const keys = Object.keys(one)
  if (keys.length !== Object.keys(other).length || Array.isArray(one) !== Array.isArray(other)) return false
  return keys.every(
    (key) =>
      Object.hasOwn(other, key) &&
      isSame((one as Record<string, unknown>)[key], (other as Record<string, unknown>)[key]),
  )
}
