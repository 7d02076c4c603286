import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Context, defineAgent } from '../../dist/index.js'

export interface StormTask {
  readonly kind: 'quick' | 'sleep' | 'large' | 'parent' | 'setup'
  /**
   * Gets a line for each start: `start`, the task's id, the worker's pid. And one for each sub-task's response: `got`, its id,
   * the pid of the parent's worker, status, attempts.
   */
  readonly ledger: string
  readonly ms: number
  /** The length of the answer. */
  readonly bytes: number
}

const MOST_SETUP_MS = 300

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

async function run(input: StormTask, ctx: Pick<Context, 'task' | 'step' | 'runTask'>): Promise<string> {
  const { id } = ctx.task
  appendFileSync(input.ledger, `start ${id} ${process.pid}\n`)
  ctx.step({ action: 'begin', observation: id })
  if (input.kind === 'parent') {
    const responses = await ctx.runTask([child.task(input), child.task(input)])
    // Until here a sub-task could be hit by a kill: its answer may have been on its way.
    for (const one of responses.values())
      appendFileSync(input.ledger, `got ${one.id} ${process.pid} ${one.status} ${one.attempts}\n`)
  }
  if (input.kind !== 'quick') await sleep(input.ms)
  return stormAnswer(id, input.bytes)
}

/** No task of these agents ever harms its worker. */
export const stormed = defineAgent({ name: 'kill-storm', run: (input: StormTask, ctx) => run(input, ctx) })

/** Its tasks have begun, for the driver, while the setup runs: a suspect is announced before the setup for it. */
export const stormedSetup = defineAgent({
  name: 'kill-storm-setup',
  setup: () => sleep(MOST_SETUP_MS * Math.random()),
  run: (input: StormTask, ctx) => run(input, ctx),
})
