import { isObject } from '../../protocol/shapes.ts'
import { oneLine } from '../../text/escape-controls.ts'
import { LONGEST_PAUSE_MS } from '../calling.ts'
import type { ModelNote, PermitAsked, SettleAsked } from '../protocol.ts'
import type { PermitOutcome, SharedFailure } from './limiter.ts'

/** Parses requests of workers. They are untrusted: a worker may be on another machine, and may not be our program. */

const malformed = (what: string) => new TypeError(`a malformed ${what}`)

/** `mostMs`: the maximum waiting time of a model. */
export function readPermit(asked: unknown, mostMs: (model: string) => number): PermitAsked {
  if (!isObject(asked)) throw malformed('request for a permit')
  const { model, permit, call, tokens, waitMs, delayMs, first } = asked as Record<string, unknown>
  if (typeof model !== 'string' || !isNumber(permit) || !isNumber(waitMs) || !isNumber(delayMs))
    throw malformed('request for a permit')
  const most = mostMs(model)
  return {
    ...{ model, permit, call: isNumber(call) ? call : 0, tokens: isNumber(tokens) ? tokens : 0, first: first === true },
    ...{ waitMs: Math.min(waitMs, most), delayMs: Math.min(delayMs, LONGEST_PAUSE_MS) },
  }
}

export function readSettled(asked: unknown): SettleAsked {
  const { permit, outcome } = (isObject(asked) ? asked : {}) as Record<string, unknown>
  if (!isNumber(permit) || !isObject(outcome)) throw malformed('outcome of a call')
  const { kind, tokens, retryAfterMs, shared } = outcome as Record<string, unknown>
  if (!isKind(kind)) throw malformed('outcome of a call')
  const failure = kind === 'failed' ? readShared(shared) : undefined
  return {
    permit,
    outcome: {
      kind,
      ...(isNumber(tokens) && { tokens }),
      ...(isNumber(retryAfterMs) && { retryAfterMs: Math.min(retryAfterMs, LONGEST_REPORTED_PAUSE_MS) }),
      ...(failure && { shared: failure }),
    },
  }
}

/**
 * A worker may be lying, and its report pauses the calls of all. If the server did ask for more, the next call after the pause is
 * refused again.
 */
const LONGEST_REPORTED_PAUSE_MS = 30_000

const MAX_WHY_CHARS = 800

function readShared(given: unknown): SharedFailure | undefined {
  if (!isObject(given)) return undefined
  const { kind, status, why } = given as Record<string, unknown>
  if ((kind !== 'refused' && kind !== 'unreachable') || typeof why !== 'string') return undefined
  return { kind, ...(isNumber(status) && { status }), why: oneLine(why.slice(0, MAX_WHY_CHARS)) }
}

export function readNote(asked: unknown): ModelNote {
  const { kind, model, why } = (isObject(asked) ? asked : {}) as Record<string, unknown>
  if (typeof model !== 'string') throw malformed('note on a call')
  if (kind === 'not-awaited') return { kind, model }
  if (kind !== 'not-strict' || typeof why !== 'string') throw malformed('note on a call')
  return { kind, model, why: oneLine(why.slice(0, MAX_WHY_CHARS)) }
}

const KINDS: readonly unknown[] = ['ok', 'rate_limit', 'failed'] satisfies PermitOutcome['kind'][]
const isKind = (value: unknown): value is PermitOutcome['kind'] => KINDS.includes(value)
const isNumber = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value < Infinity
