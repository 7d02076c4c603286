import { inspect } from 'node:util'
import type { Packed } from '../protocol/messages.ts'
import { pack } from '../protocol/pack.ts'

const LONGEST = 500

/** Why the caller aborted a run. */
export interface AbortReason {
  /** Undefined if `abort()` was called without a reason. */
  readonly text: string | undefined
  /** The reason itself, if it can be copied: the `cause` of the responses' errors. */
  readonly thrown?: Packed
}

export function abortReason({ reason }: AbortSignal): AbortReason {
  // Node's default reason, if the caller gave none.
  if (reason instanceof DOMException && reason.name === 'AbortError') return { text: undefined }
  const text = textOf(reason).slice(0, LONGEST)
  try {
    return { text, thrown: pack(reason) }
  } catch {
    return { text }
  }
}

function textOf(reason: unknown): string {
  if (!(reason instanceof Error))
    return typeof reason === 'string' ? reason : inspect(reason, { breakLength: Infinity })
  return reason.name === 'Error' ? reason.message : `${reason.name}: ${reason.message}`
}
