import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from '../../dist/index.js'

export interface StormInput {
  readonly kind: 'quick' | 'sleep' | 'parent' | 'throw' | 'kill' | 'never'
  /** Gets a line whenever a task is started: which session of the driver, which task, which attempt, which process. */
  readonly ledger: string
  readonly ms: number
  /** The length of the answer. */
  readonly bytes: number
}

/** What a task has to answer, told by its id alone. */
export const answerOf = (id: string, bytes: number): string => `${id};`.repeat(Math.ceil(bytes / 4)).slice(0, bytes)

const note = ({ ledger }: StormInput, id: string, attempt: number) =>
  appendFileSync(ledger, `${process.env.STORM_SESSION} ${id} ${attempt} ${process.pid}\n`)

const child = defineAgent({
  name: 'storm-child',
  run: async (input: StormInput, ctx) => {
    note(input, ctx.task.id, ctx.attempt)
    await sleep(input.ms)
    return answerOf(ctx.task.id, input.bytes)
  },
})

export const storm = defineAgent({
  name: 'storm',
  run: async (input: StormInput, ctx) => {
    const { id } = ctx.task
    note(input, id, ctx.attempt)
    ctx.step({ action: 'begin', observation: id })
    if (input.kind === 'parent') {
      const done = await ctx.runTask([child.task(input), child.task(input)])
      const wrong = [...done.values()].filter((one) => one.answer !== answerOf(one.id, input.bytes))
      if (wrong.length > 0) throw new Error(`sub-task ${wrong[0]!.id} is ${wrong[0]!.status}`)
    }
    if (input.kind !== 'quick') await sleep(input.ms)
    if (input.kind === 'throw') throw new Error(`${id} throws`)
    if (input.kind === 'kill') {
      process.kill(process.pid, 'SIGKILL')
      await sleep(10_000)
    }
    return answerOf(id, input.bytes)
  },
})
