import type { AskOptions } from '../agent.ts'
import { didYouMean } from '../did-you-mean.ts'
import { ManyworldsError } from '../errors.ts'
import { whyTooManyKeys } from '../protocol/count-keys.ts'
import { LIMITS, type LimitAsked, ONCE, OWN_SERVICES, type Packed } from '../protocol/messages.ts'
import { lastPackedSize, NotPackable, pack } from '../protocol/pack.ts'
import { type Asking, DEFAULT_LIMIT_MS } from './requests.ts'

const MAX_NAME_CHARS = 256
/** Added to the driver's own limit, so that the driver, which knows the reason, reports first. */
const GRACE_MS = 5000
const NO_LIMIT = Number.POSITIVE_INFINITY
const OPTIONS: Readonly<Record<keyof AskOptions, true>> = { signal: true, limitMs: true, slot: true, clock: true }
const OPTION_NAMES = Object.keys(OPTIONS)

/** Checks the arguments of `ctx.ask()` and `ctx.askStream()`. `call`: the name for the error. */
export function checkedAsking(
  call: string,
  service: unknown,
  question: unknown,
  options: AskOptions | undefined,
  kind: Asking['kind'],
): Asking {
  if (!isName(service)) throw invalid(call, `the name of a service must be a text of 1 to ${MAX_NAME_CHARS} characters`)
  if (service.startsWith(OWN_SERVICES))
    throw invalid(call, `names that begin with '${OWN_SERVICES}' are reserved; ask one of the run's own services`)
  return askingOf(service, question, checkedOptions(call, options), kind)
}

export function askingOf(
  service: string,
  question: unknown,
  { signal, slot = 'keep', clock = 'stands', limitMs }: AskOptions = {},
  kind: Asking['kind'],
): Asking {
  return {
    ...{ service, kind, slot, clock, signal },
    limitMs: limitMs ?? (clock === 'stands' ? DEFAULT_LIMIT_MS : NO_LIMIT),
    ...bodyOf(question, `the question to service '${service}'`),
  }
}

/** Checks the arguments of `ctx.limit()`. */
export function limitAskingOf(name: unknown, options: AskOptions | undefined): Asking {
  if (!isName(name)) throw invalid('limit', `the name of a limit must be a text of 1 to ${MAX_NAME_CHARS} characters`)
  const checked = checkedOptions('limit', options)
  const { limitMs = checked.clock === 'runs' ? NO_LIMIT : DEFAULT_LIMIT_MS } = checked
  const asked: LimitAsked = [name, limitMs]
  return askingOf(LIMITS, asked, { ...checked, limitMs: limitMs + GRACE_MS }, 'one')
}

/** Checks the arguments of `ctx.once()`. The task's clock runs: the task does the work itself. */
export function onceAskingOf(name: unknown, question: unknown, make: unknown): Asking {
  if (!isName(name)) throw invalid('once', `the name must be a text of 1 to ${MAX_NAME_CHARS} characters`)
  if (typeof make !== 'function')
    throw invalid(
      'once',
      'the third argument must be the function that does the work: ctx.once(name, question, () => …)',
    )
  const body = bodyOf([name, question], `the question of ctx.once('${name}')`)
  return { service: ONCE, kind: 'own', slot: 'keep', clock: 'runs', limitMs: NO_LIMIT, signal: undefined, ...body }
}

/** The result of `make`, ready to be sent. */
export function onceResultOf(name: string, result: unknown): { body: Packed; size: number } {
  return bodyOf(result, `the result of ctx.once('${name}')`)
}

const isName = (name: unknown): name is string =>
  typeof name === 'string' && name !== '' && name.length <= MAX_NAME_CHARS

function checkedOptions(call: string, options: AskOptions = {}): AskOptions {
  if (typeof options !== 'object' || options === null) throw invalid(call, 'options must be an object')
  const unknown = Object.keys(options).find((name) => !OPTION_NAMES.includes(name))
  if (unknown !== undefined)
    throw invalid(
      call,
      `there is no option '${unknown}'${didYouMean(unknown, OPTION_NAMES)}; the options are ${OPTION_NAMES.join(', ')}`,
    )
  const { signal, limitMs, slot = 'keep', clock = 'stands' } = options
  if (limitMs !== undefined && !(typeof limitMs === 'number' && limitMs > 0))
    throw invalid(call, `limitMs must be a number of milliseconds above 0, not ${String(limitMs)}`)
  if (slot !== 'keep' && slot !== 'give') throw invalid(call, `slot must be 'keep' or 'give', not ${String(slot)}`)
  if (clock !== 'stands' && clock !== 'runs')
    throw invalid(call, `clock must be 'stands' or 'runs', not ${String(clock)}`)
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw invalid(call, 'signal must be an AbortSignal, such as controller.signal')
  return options
}

const invalid = (call: string, why: string) => new ManyworldsError('REQUEST_INVALID', `ctx.${call}(): ${why}`)

function bodyOf(value: unknown, what: string): { body: Packed; size: number } {
  try {
    const body = pack(value)
    const tooMany = whyTooManyKeys(body)
    if (tooMany !== undefined) throw new NotPackable(tooMany)
    return { body, size: lastPackedSize(body) }
  } catch (error) {
    if (!(error instanceof NotPackable)) throw error
    throw new ManyworldsError('VALUE_NOT_SERIALIZABLE', `${what} cannot be sent: ${error.message}; give plain data`)
  }
}
