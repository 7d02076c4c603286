import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from '../../dist/index.js'

export interface Straggling {
  readonly file: string
  /** How long the first start of this task takes, and how long a second. */
  readonly ms: readonly [number, number]
  /** What the first start does when it has been alone for that long. */
  readonly end?: 'answer' | 'die' | 'throw'
  readonly subTasks?: boolean
  /** Asks this service before it takes its time. */
  readonly asks?: string
  readonly clock?: 'runs' | 'stands'
}

/** Slow when it is started first, quick when it is started again, as on a machine that is busy with something else. */
export const straggling = defineAgent({
  name: 'straggling',
  run: async ({ file, ms, end = 'answer', subTasks = false, asks, clock = 'stands' }: Straggling, ctx) => {
    appendFileSync(file, `start ${process.pid}\n`)
    const first = readFileSync(file, 'utf8').match(/start/g)!.length === 1
    const name = first ? 'first' : 'second'
    ctx.step({ action: name })
    console.log(name)
    if (subTasks) await ctx.runTask(quick.task(1))
    if (asks !== undefined) await ctx.ask(asks, null, { clock })
    try {
      await sleep(ms[first ? 0 : 1], undefined, { signal: ctx.signal })
    } catch {
      appendFileSync(file, `given up ${name}\n`)
      throw new Error('given up')
    }
    if (first && end === 'die') process.kill(process.pid, 'SIGKILL')
    if (first && end === 'throw') throw new Error('from the first')
    return name
  },
})

export const quick = defineAgent({ name: 'quick', run: async (ms: number) => sleep(ms, 'quick') })
