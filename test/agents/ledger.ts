import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Agent, defineAgent } from 'manyworlds'

interface Entry {
  /** A file that gets a line for every time the task is run. */
  readonly ledger: string
  readonly ms?: number
  /** Fails while this is larger than the attempt. */
  readonly until?: number
  readonly say?: unknown
}

/** Leaves a trace of having run. */
export const ledger = defineAgent({
  name: 'ledger',
  run: async ({ ledger, ms = 0, until = 0, say }: Entry, ctx) => {
    appendFileSync(ledger, `${ctx.task.id}\n`)
    ctx.step({ action: 'wrote', observation: ctx.task.id })
    if (ms > 0) await sleep(ms, undefined, { signal: ctx.signal })
    if (ctx.attempt < until) throw new Error(`not before attempt ${until}`)
    return { id: ctx.task.id, say, previous: ctx.previous, results: [...ctx.results] }
  },
})

/** Has two of the above done by sub-tasks, and then something of its own. */
export const parent = defineAgent({
  name: 'parent',
  run: async ({ ledger: file, ms = 0 }: Entry, ctx) => {
    appendFileSync(file, `${ctx.task.id}\n`)
    const children = await ctx.runTask([ledger.task({ ledger: file }), ledger.task({ ledger: file, say: 'second' })])
    if (ms > 0) await sleep(ms, undefined, { signal: ctx.signal })
    return [...children.values()].map(({ id, restored }) => ({ id, restored }))
  },
})

/** Returns and records what JSON cannot hold. */
export const odd = defineAgent({
  name: 'odd',
  run: async (input: unknown, ctx) => {
    ctx.step({ action: new Map([['a', new Date(5)]]), observation: undefined, reward: Number.NaN })
    return { input, big: 12n, bytes: new Uint8Array([1, 2, 3]), set: new Set([1]), nothing: undefined }
  },
})

/** A conversation: every step has all messages so far, as calls of a model have. */
export const chat = defineAgent({
  name: 'chat',
  run: async ({ turns, seed }: { turns: number; seed: number }, ctx) => {
    const messages: { role: string; content: string }[] = []
    for (let turn = 0; turn < turns; turn++) {
      messages.push({ role: turn % 2 === 0 ? 'user' : 'assistant', content: words(turn, seed) })
      ctx.step({ action: { messages: [...messages] }, reward: turn / turns })
    }
    return messages.length
  },
})

const words = (turn: number, seed: number) =>
  Array.from({ length: 30 }, (_, i) => ((turn * 7919 + seed * 104_729 + i * 611_953) % 99_991).toString(36)).join(' ')

interface Nest {
  readonly depth: number
  readonly failFirst?: boolean
  readonly child?: string
}

/** A task within a task, so many deep. */
export const nest: Agent<Nest, number> = defineAgent({
  name: 'nest',
  run: async ({ depth, failFirst, child = 'x' }: Nest, ctx): Promise<number> => {
    if (depth > 0) {
      const { status } = await ctx.runTask(nest.task({ depth: depth - 1 }, { id: child }))
      if (status !== 'success') throw new Error(`the sub-task is ${status}`)
    }
    if (failFirst && ctx.attempt === 1) throw new Error('not at the first attempt')
    return depth
  },
})
