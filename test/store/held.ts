import { appendFileSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from 'manyworlds'

interface Entry {
  /** A file that gets a line for every time the task is run. */
  readonly ledger: string
  readonly say?: unknown
}

const holdOf = (ledger: string, id: string) => `${ledger}.${id}.hold`

/** Leaves a trace of having run, and ends only when nobody holds it. */
export const held = defineAgent({
  name: 'held',
  run: async ({ ledger, say }: Entry, ctx) => {
    appendFileSync(ledger, `${ctx.task.id}\n`)
    ctx.step({ action: 'wrote', observation: ctx.task.id })
    while (existsSync(holdOf(ledger, ctx.task.id))) await sleep(10, undefined, { signal: ctx.signal })
    return { id: ctx.task.id, say, previous: ctx.previous, results: [...ctx.results] }
  },
})

/** Holds tasks of a ledger; returns what lets go of them. */
export function hold(ledger: string, ids: readonly string[]): () => void {
  for (const id of ids) writeFileSync(holdOf(ledger, id), '')
  return () => {
    for (const id of ids) rmSync(holdOf(ledger, id), { force: true })
  }
}
