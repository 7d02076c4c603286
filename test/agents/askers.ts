import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from 'manyworlds'

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
