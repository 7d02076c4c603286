import { spawnSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from 'manyworlds'
import { askAside } from '../../src/worker/side-ask.ts'

/** Asks a service once and answers with what it says. */
export const asker = defineAgent({
  name: 'asker',
  run: async (
    {
      service,
      question,
      ...options
    }: { service: string; question?: unknown; limitMs?: number; slot?: 'keep' | 'give'; clock?: 'runs' | 'stands' },
    ctx,
  ) => ctx.ask(service, question, options),
})

/** Says what came of a request, also of one that failed. */
export const told = defineAgent({
  name: 'told',
  run: async ({ service, question, limitMs }: { service: string; question?: unknown; limitMs?: number }, ctx) => {
    try {
      return { answer: await ctx.ask(service, question, limitMs === undefined ? {} : { limitMs }) }
    } catch (error) {
      return { code: (error as { code?: string }).code, message: (error as Error).message }
    }
  },
})

/** Its question has so many keys. */
export const asksTooMuch = defineAgent({
  name: 'asksTooMuch',
  run: async (keys: number, ctx) => {
    const question = new Map(Array.from({ length: keys }, (_, key) => [key, 0]))
    return ctx.ask('any', question).catch(({ code, message }) => ({ code, message }))
  },
})

/** Asks a service again and again, and takes some time of its own after each answer. */
export const slowBetween = defineAgent({
  name: 'slowBetween',
  run: async ({ service, count, ms }: { service: string; count: number; ms: number }, ctx) => {
    for (let i = 0; i < count; i++) {
      await ctx.ask(service, 1)
      await sleep(ms)
    }
  },
})

/** Asks for many things at once. */
export const manyAtOnce = defineAgent({
  name: 'manyAtOnce',
  run: async ({ service, count }: { service: string; count: number }, ctx) =>
    Promise.all(Array.from({ length: count }, (_, i) => ctx.ask<number>(service, i))),
})

export const streamer = defineAgent({
  name: 'streamer',
  run: async ({ parts, takes, pauseEvery }: { parts: number; takes?: number; pauseEvery?: number }, ctx) => {
    let sum = 0
    let count = 0
    for await (const part of ctx.askStream<number>('count', parts)) {
      sum += part
      if (++count === takes) break
      if (pauseEvery && count % pauseEvery === 0) await sleep(1)
    }
    return { sum, count }
  },
})

/** Asks and is gone before the answer. */
export const leaver = defineAgent({
  name: 'leaver',
  run: async ({ count }: { count: number }, ctx) => {
    for (let i = 0; i < count; i++) void ctx.ask('never', i).catch(() => {})
    await sleep(50)
    return 'left'
  },
})

/** Takes its worker down while it waits, unless the ledger says that it has done so before. */
export const killer = defineAgent({
  name: 'killer',
  run: async (_: null, ctx) => {
    for (let i = 0; i < 63; i++) void ctx.ask('never', i).catch(() => {})
    await ctx.ask('hello')
    process.kill(process.pid, 'SIGKILL')
    await sleep(60_000)
  },
})

/** Asks for three answers that count, and does something once, with a crash of its worker in between if `crash` is set. */
export const counted = defineAgent({
  name: 'counted',
  run: async ({ ledger, ms = 0 }: { ledger: string; ms?: number }, ctx) => {
    const answers = []
    for (let i = 0; i < 3; i++) answers.push(await ctx.ask('bill', { cents: i }))
    const once = await ctx.once('pay', { to: 'me' }, () => {
      appendFileSync(ledger, `${ctx.task.id} paid\n`)
      return { receipt: answers.length }
    })
    appendFileSync(ledger, `${ctx.task.id} ran\n`)
    await sleep(ms)
    return { answers, once }
  },
})

/** Dies the first time, with everybody beside it. */
export const dieOnce = defineAgent({
  name: 'dieOnce',
  run: async ({ ledger, ms }: { ledger: string; ms: number }, ctx) => {
    await sleep(ms)
    const { existsSync, writeFileSync } = await import('node:fs')
    if (existsSync(`${ledger}-died`)) return 'lived'
    writeFileSync(`${ledger}-died`, ctx.task.id)
    process.kill(process.pid, 'SIGKILL')
    await sleep(60_000)
    return ''
  },
})

interface Told {
  readonly value?: unknown
  readonly code?: unknown
  readonly message?: string
  /** It threw, where a promise that is rejected was to be expected. */
  readonly threw?: true
}

async function outcomeOf(call: () => unknown): Promise<Told> {
  let promise: unknown
  try {
    promise = call()
  } catch (error) {
    return { threw: true, message: (error as Error).message }
  }
  try {
    return { value: await promise }
  } catch (error) {
    const { code, message } = error as { code?: unknown; message: string }
    return { code, message }
  }
}

/** Asks in every wrong way there is. */
export const wronglyAsking = defineAgent({
  name: 'wronglyAsking',
  run: async (_: null, ctx) => {
    const ask = ctx.ask as (...args: unknown[]) => Promise<unknown>
    const once = ctx.once as (...args: unknown[]) => Promise<unknown>
    const calls: Record<string, () => unknown> = {
      'an unknown option': () => ask('echo', 1, { limitMS: 5 }),
      'options null': () => ask('echo', 1, null),
      'a controller as signal': () => ask('echo', 1, { signal: new AbortController() }),
      'a limit as text': () => ask('echo', 1, { limitMs: '5' }),
      'a limit of 0': () => ask('echo', 1, { limitMs: 0 }),
      'a limit of NaN': () => ask('echo', 1, { limitMs: Number.NaN }),
      'another slot': () => ask('echo', 1, { slot: 'free' }),
      'another clock': () => ask('echo', 1, { clock: 'stop' }),
      'no name': () => ask(''),
      'a number as name': () => ask(5),
      'a long name': () => ask('x'.repeat(257)),
      'a name of our own': () => ask('manyworlds.subtasks', 1),
      'a function': () => ask('echo', () => 1),
      'once without a function': () => once('x', 1),
      'once without a name': () => once(undefined, 1, () => 1),
      'once with a function as result': () => once('x', 1, () => () => 1),
    }
    const told: Record<string, Told> = {}
    for (const [name, call] of Object.entries(calls)) told[name] = await outcomeOf(call)
    return told
  },
})

const later: Told[] = []

/** Asks when it is over, and says so to `tellsLater`. */
export const asksTooLate = defineAgent({
  name: 'asksTooLate',
  run: async (_: null, ctx) => {
    later.length = 0
    setTimeout(async () => {
      later.push(await outcomeOf(() => ctx.ask('echo', 1)))
      later.push(await outcomeOf(() => ctx.once('x', 1, () => 1)))
      later.push(await outcomeOf(() => ctx.runTask(tellsLater.task(null))))
      later.push(await outcomeOf(() => ctx.askStream('echo', 1).next()))
    }, 20)
    return 'over'
  },
})

export const tellsLater = defineAgent({
  name: 'tellsLater',
  run: async (_: null) => {
    // Until nothing more has come for a while.
    for (let known = -1; known < later.length || later.length === 0; ) {
      known = later.length
      await sleep(200)
    }
    return later
  },
})

/** Asks and does not wait for it; what it does wait for takes longer. */
export const forgetful = defineAgent({
  name: 'forgetful',
  run: async (_: null, ctx) => {
    void ctx.ask('never', 1, { clock: 'runs' })
    void ctx.askStream('never', 1, { clock: 'runs' }).next()
    await sleep(60_000, undefined, { signal: ctx.signal })
  },
})

/** Blocks its event loop while it waits for a service: in JavaScript, or where nothing can interrupt it. */
export const blocksWaiting = defineAgent({
  name: 'blocksWaiting',
  run: async ({ native, ms }: { native: boolean; ms: number }, ctx) => {
    const answer = ctx.ask('slow', ms)
    if (native) spawnSync('sleep', [String(ms / 1000)])
    else for (const until = Date.now() + ms; Date.now() < until; );
    return await answer
  },
})

/** Never gives its event loop back, while its clock stands. */
export const blocksForEver = defineAgent({
  name: 'blocksForEver',
  run: async (limitMs: number, ctx) => {
    ctx.ask('never', null, { limitMs }).catch(() => {})
    // The request is on its way.
    await sleep(50)
    for (;;) Math.random()
  },
})

/** Asks for so much from its event loop, and for so much from beside it. */
export const asksTwice = defineAgent({
  name: 'asksTwice',
  run: async (count: number, ctx) => {
    const here = Array.from({ length: count }, (_, i) => ctx.ask<number>('slow', i % 20))
    const aside = Array.from({ length: count }, (_, i) => askAside(ctx, 'slow', i % 20).answer)
    return (await Promise.all([...here, ...aside])).length
  },
})

/** Waits for a service beside its event loop until it is given up. */
export const waitsAside = defineAgent({
  name: 'waitsAside',
  run: async (_: null, ctx) => {
    later.length = 0
    later.push(await outcomeOf(() => askAside(ctx, 'never', 1).answer))
  },
})

/** Asks for small and large things at once; says in which order the answers came. */
export const asksInOrder = defineAgent({
  name: 'asksInOrder',
  run: async (count: number, ctx) => {
    const came: number[] = []
    const one = async (i: number) => {
      const fill = 'x'.repeat(i % 5 === 0 ? 300_000 : i % 3 === 0 ? 70_000 : 1)
      came.push((await ctx.ask<{ i: number }>('log', { i, fill })).i)
    }
    await Promise.all(Array.from({ length: count }, (_, i) => one(i)))
    return came
  },
})

/** Goes through a gate; says when it began and when it was through. */
export const gated = defineAgent({
  name: 'gated',
  run: async (_: null, ctx) => {
    const began = Date.now()
    await ctx.ask('gate')
    return [began, Date.now()] as const
  },
})

/** Fails unless it likes the bill. */
export const picky = defineAgent({
  name: 'picky',
  run: async (_: null, ctx) => {
    const bill = await ctx.ask<string>('bill', 'x')
    if (bill === 'bad') throw new Error('a bad bill')
    return bill
  },
})

/** Leaves with everybody beside it, when it is told to. */
export const exits = defineAgent({
  name: 'exits',
  run: async (_: null, ctx) => {
    await ctx.ask('wait')
    process.exit(3)
  },
})

/** Asks for so many bills and goes through a gate, before or after that. */
export const manyValues = defineAgent({
  name: 'manyValues',
  run: async (count: number, ctx) => {
    if (count === 1) await ctx.ask('gate')
    const values: unknown[] = []
    for (let i = 0; i < count; i++) values.push(await ctx.ask('bill', i))
    if (count > 1) await ctx.ask('gate')
    return values
  },
})

/** Has a sub-task whose input is not the same each time. */
export const childOf = defineAgent({
  name: 'childOf',
  run: async (_: null, ctx) => {
    const which = await ctx.ask<string>('which')
    const { answer } = await ctx.runTask(billedChild.task(which, { id: 'child' }))
    return answer
  },
})

export const billedChild = defineAgent({
  name: 'billedChild',
  run: async (_: string, ctx) => {
    const bill = await ctx.ask<string>('bill', 'x')
    await ctx.ask('gate')
    return bill
  },
})
