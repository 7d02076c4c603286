import { errorItem } from './check-messages.ts'
import { type ErrorItem, OUTCOME, type OutcomeStatus, type Packed } from './messages.ts'
import { readPacked } from './read-packed.ts'

/** What an outcome holds: an answer, or an error. Throws if a worker does not say that. */
export function readOutcome(status: OutcomeStatus, packed: Packed): unknown {
  const value = readPacked(packed)
  if (status !== OUTCOME.success && status !== OUTCOME.cancelled && !errorItem(value))
    throw new TypeError('a failed outcome without an error')
  return value as ErrorItem
}
