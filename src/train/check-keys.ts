import { ManyworldsError } from '../errors.ts'
import { nearest } from '../near-miss.ts'

/** A key that nobody reads is a mistake that would be noticed late, or never. `where`: such as "`loss`". */
export function checkKeys(given: object, allowed: readonly string[], where: string): void {
  const unknown = Object.keys(given).find((key) => !allowed.includes(key))
  if (unknown === undefined) return
  const meant = nearest(unknown, allowed)
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `unknown key '${unknown}' in ${where}${meant === undefined ? '' : `, did you mean '${meant}'?`}; allowed: ${allowed.join(', ')}`,
  )
}
