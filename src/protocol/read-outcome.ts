import { errorItem, experience } from './check-messages.ts'
import { whyTooManyKeys } from './count-keys.ts'
import { type ErrorItem, type Experience, OUTCOME, type OutcomeStatus, type Packed } from './messages.ts'
import { readPacked } from './read-packed.ts'

/** The answer or the error of an outcome. Throws if it is malformed. */
export function readOutcome(status: OutcomeStatus, packed: Packed): unknown {
  const tooMany = whyTooManyKeys(packed)
  if (tooMany !== undefined) throw new TypeError(`the answer cannot be read: ${tooMany}`)
  const value = readPacked(packed)
  if (status !== OUTCOME.success && status !== OUTCOME.cancelled && !errorItem(value))
    throw new TypeError('a failed outcome without an error')
  return value as ErrorItem
}

/** The experience in an outcome. Throws if it is malformed. */
export function readExperience(packed: Packed): Experience | undefined {
  if (packed === undefined) return undefined
  const value = readPacked(packed)
  if (!experience(value)) throw new TypeError('an outcome whose experience is malformed')
  return value as Experience
}
