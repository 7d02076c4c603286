import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from '../../dist/index.js'

export interface StormTask {
  readonly kind: 'quick' | 'sleep' | 'large' | 'parent'
  /** Gets a line for each start: `start`, the task's id, the worker's pid. */
  readonly ledger: string
  readonly ms: number
  /** The length of the answer. */
  readonly bytes: number
}

/** The answer that a task must give, by its id. */
export const stormAnswer = (id: string, bytes: number): string => `${id};`.repeat(Math.ceil(bytes / 4)).slice(0, bytes)

const child = defineAgent({
  name: 'kill-storm-child',
  run: async ({ ledger, ms }: StormTask, ctx) => {
    appendFileSync(ledger, `start ${ctx.task.id} ${process.pid}\n`)
    await sleep(ms)
    return ctx.task.id
  },
})

/** No task of this agent ever harms its worker: none may be charged for a kill from outside. */
export const stormed = defineAgent({
  name: 'kill-storm',
  run: async (input: StormTask, ctx) => {
    const { id } = ctx.task
    appendFileSync(input.ledger, `start ${id} ${process.pid}\n`)
    ctx.step({ action: 'begin', observation: id })
    if (input.kind === 'parent') {
      const responses = await ctx.runTask([child.task(input), child.task(input)])
      for (const one of responses.values()) {
        // Until here it could be hit by a kill: its answer may have been on its way.
        appendFileSync(input.ledger, `got ${one.id} ${process.pid}\n`)
        if (!one.success || one.attempts > 1)
          throw new Error(`sub-task ${one.id} is ${one.status} after ${one.attempts} attempts: ${one.error?.message}`)
      }
    }
    if (input.kind !== 'quick') await sleep(input.ms)
    return stormAnswer(id, input.bytes)
  },
})
