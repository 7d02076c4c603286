import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, Runners } from 'manyworlds'

/** Answers everything that it can see of its task. */
export const seer = defineAgent({
  name: 'seer',
  params: { tone: 'calm' },
  run: async (input: unknown, ctx) => ({
    input,
    task: ctx.task,
    attempt: ctx.attempt,
    key: ctx.idempotencyKey,
    params: ctx.params,
    previous: ctx.previous,
    results: ctx.results,
    aborted: ctx.signal.aborted,
    random: [ctx.random(), ctx.random()],
  }),
})

/** Adds what the task before it answered. */
export const summer = defineAgent({
  name: 'summer',
  run: async (input: number, ctx) => {
    if (input < 0) throw new Error('below zero')
    return input + ((ctx.previous as number | undefined) ?? 0)
  },
})

/** Prints a short line, and one that is too long. */
export const printsMuch = defineAgent({
  name: 'prints-much',
  run: (chars: number) => {
    console.log('first')
    console.log('x'.repeat(chars))
    console.log('not kept')
  },
})

/** Prints and records while others do the same. */
export const talker = defineAgent({
  name: 'talker',
  run: async (name: string, ctx) => {
    const { log, step } = ctx
    for (let turn = 0; turn < 3; turn++) {
      console.log(`${name} says %d`, turn)
      await sleep(5)
      console.error(`${name} warns ${turn}`)
      log(name, { turn })
      step({
        action: turn,
        observation: name,
        reward: 0.5,
        usage: { inputTokens: 10, costUsd: 0.25 },
        data: { mine: [turn] },
      })
    }
    process.stdout.write('two\nlines\n')
    return name
  },
})

let setups = 0

/** Set up once per worker. */
export const prepared = defineAgent({
  name: 'prepared',
  params: { fail: '' },
  setup: async ({ fail }, ctx) => {
    await sleep(20)
    if (fail !== '') throw new Error(fail)
    return { pid: process.pid, setups: ++setups, signal: ctx.signal instanceof AbortSignal }
  },
  run: async (_input: number, ctx) => ctx.state,
})

/** Changes its input, and answers it. */
export const changer = defineAgent({
  name: 'changer',
  run: async (input: { list: number[] }) => {
    input.list.push(input.list.length)
    await sleep(5)
    return input.list
  },
})

/** Runs itself with less, until nothing is left: through the context, or as a script would. */
export const nested = defineAgent({
  name: 'nested',
  run: async ({ depth, by }: { depth: number; by: 'context' | 'Runners' }, ctx): Promise<string> => {
    if (depth === 0) return 'leaf'
    const tasks = [0, 1].map((index) => ({ id: `c${index}`, input: { depth: depth - 1, by }, agent: nested }))
    const responses = await (by === 'context' ? ctx.runTask(tasks) : Runners.runTask(tasks))
    return `(${[...responses.values()].map((response) => (response.success ? response.answer : response.error.message)).join(' ')})`
  },
})

/** What sub-tasks come to when they fail, and what is refused inside a task. */
export const parent = defineAgent({
  name: 'parent',
  run: async (what: 'fails' | 'duplicate' | 'config' | 'stream' | 'sync' | 'bad', ctx) => {
    switch (what) {
      case 'fails': {
        const child = await ctx.runTask(summer.task(-1))
        return [child.id, child.status, child.error?.code, child.error?.message]
      }
      case 'duplicate':
        return ctx.runTask([summer.task(1, { id: 'x' }), summer.task(2, { id: 'x' })])
      case 'config':
        return Runners.runTask([summer.task(1)], { workerNum: 4 })
      case 'stream':
        return Runners.streamTask([summer.task(1)]).next()
      case 'sync':
        return Runners.syncRunTask([summer.task(1)])
      case 'bad':
        return ctx.runTask(null as never)
    }
  },
})
