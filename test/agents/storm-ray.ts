import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from '../../dist/index.js'

export interface LargeInput {
  /** Gets a line whenever a task is started. */
  readonly ledger: string
  readonly ms: number
  readonly text: string
  /** The length of the answer. */
  readonly answerBytes: number
}

/** Text of a length that nobody else's task has. */
export const textOf = (id: string, bytes: number): string => `${id};`.repeat(Math.ceil(bytes / 3)).slice(0, bytes)

/** Takes megabytes, and answers with megabytes. */
export const large = defineAgent({
  name: 'storm-large',
  run: async ({ ledger, ms, text, answerBytes }: LargeInput, ctx) => {
    const { id } = ctx.task
    appendFileSync(ledger, `start ${id} ${process.pid}\n`)
    if (text !== textOf(id, text.length)) throw new Error(`the input of ${id} is not what was sent`)
    await sleep(ms)
    return textOf(`answer-${id}`, answerBytes)
  },
})
