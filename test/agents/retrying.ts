import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, FatalError, RetryableError } from 'manyworlds'

/** The same classes from a second copy of the package. */
const copy: typeof import('manyworlds') = await import(new URL('../../dist/retry-errors.js?copy', import.meta.url).href)

export interface Trying {
  /** What every attempt before `until` throws. */
  readonly throws: keyof typeof ERRORS
  readonly until?: number
  readonly retryAfterMs?: number
  /** When each attempt was started, a line each. */
  readonly file?: string
}

const ERRORS = {
  plain: () => new Error('plain'),
  fatal: () => new FatalError('the key is not valid', { cause: { status: 401 } }),
  retryable: (retryAfterMs?: number) => new RetryableError('rate limited', { retryAfterMs }),
  'fatal of a copy': () => new copy.FatalError('the key is not valid'),
  'retryable of a copy': () => new copy.RetryableError('rate limited'),
  'fatal as a cause': () => new Error('outer', { cause: new FatalError('inner') }),
  'a subclass': () => new (class Overloaded extends RetryableError {})('overloaded'),
  'a getter that throws': () => new Proxy(new Error('odd'), { get: () => thrown('no') }),
}

function thrown(message: string): never {
  throw new Error(message)
}

async function attempt({ throws, until = Infinity, retryAfterMs, file }: Trying, count: number) {
  if (file) appendFileSync(file, `${Date.now()}\n`)
  if (count < until) throw (ERRORS[throws] as (retryAfterMs?: number) => Error)(retryAfterMs)
  return count
}

export const tries = defineAgent({
  name: 'tries',
  run: (input: Trying, ctx) => attempt(input, ctx.attempt),
})

export const hangs = defineAgent({ name: 'hangs', run: () => sleep(60_000) })

export const exits = defineAgent({ name: 'exits', run: (_: string): never => process.exit(3) })

/** Answers how many attempts its sub-task took. */
export const asksForTrying = defineAgent({
  name: 'asks-for-trying',
  run: async (input: Trying, ctx) => {
    const { status, attempts } = await ctx.runTask(tries.task(input))
    return { status, attempts }
  },
})

/** What an agent sees that gives a wrong wait. */
export const waitsWrong = defineAgent({
  name: 'waits-wrong',
  run: async (retryAfterMs: number) => {
    throw new RetryableError('rate limited', { retryAfterMs, cause: 'the reply' })
  },
})

let setups = 0

/** Is ready at the third try. */
export const readyLate = defineAgent({
  name: 'ready-late',
  setup: async () => {
    if (++setups < 3) throw new RetryableError('the index is not there yet', { retryAfterMs: 1 })
    return setups
  },
  run: (_: string, ctx) => ctx.state,
})

export const neverReady = defineAgent({
  name: 'never-ready',
  setup: () => {
    throw new FatalError('no such index')
  },
  run: (input: string) => input,
})

/** Throws where nobody awaits it. */
export const throwsLater = defineAgent({
  name: 'throws-later',
  run: async (_: string) => {
    setTimeout(() => {
      throw new FatalError('in a timer')
    })
    await sleep(60_000)
  },
})
