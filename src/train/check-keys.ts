import { nearest } from '../did-you-mean.ts'
import { ManyworldsError } from '../errors.ts'

/** Throws on an unknown key, which would otherwise have no effect. `where`: for the message, such as "`loss`". */
export function checkKeys(given: object, allowed: readonly string[], where: string): void {
  const unknown = Object.keys(given).find((key) => !allowed.includes(key))
  if (unknown === undefined) return
  const meant = nearest(unknown, allowed)
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `unknown key '${unknown}' in ${where}${meant === undefined ? '' : `, did you mean '${meant}'?`}; allowed: ${allowed.join(', ')}`,
  )
}
