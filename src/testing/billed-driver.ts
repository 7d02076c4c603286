import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { runTask, shutdown } from '../runners/runners.ts'
import { openForReading } from '../store/open-for-reading.ts'
import { billed } from './asking-agents.ts'
import type { EngineFactory } from './case.ts'

/**
 * A driver whose tasks request durable answers, one after the other. With `killAt` it kills itself when that answer is committed
 * but not delivered yet.
 */
const [module, name, store, ledger, killAt] = process.argv.slice(2) as string[]
/** This thread delivers answers and another commits them: while this thread is blocked, a commit can finish but no answer can be sent. */
const TURN_MS = 200

const factory = ((await import(module!)) as Record<string, EngineFactory>)[name!]!
const given = new Map<string, string>()
let asked = 0
const services = {
  bill: {
    durable: true,
    answer: async (question: string) => {
      appendFileSync(ledger!, `${question}\n`)
      const [task, bill] = question.split('/') as [string, string]
      const before = given.get(`${task}/${Number(bill) - 1}`)
      // A task that requests the next bill has received the previous answer.
      if (before !== undefined && !isStored(before))
        appendFileSync(ledger!, `${before} was given before it was stored\n`)
      await sleep(2)
      const answer = `${question}: ${++asked}`
      given.set(question, answer)
      if (asked === Number(killAt)) setImmediate(dieWhenStored, answer)
      return answer
    },
  },
}
await runTask(
  Array.from({ length: 6 }, (_, n) => billed.task({ name: `t${n}`, bills: 4 }, { id: `t${n}` })),
  { cls: factory, workerNum: 2, store: store!, runId: 'billed', resume: 'auto', services },
)
await shutdown()

function dieWhenStored(answer: string): void {
  for (const until = Date.now() + TURN_MS; Date.now() < until; )
    if (isStored(answer)) process.kill(process.pid, 'SIGKILL')
  // The answer may not have been sent to the writer thread yet.
  setImmediate(dieWhenStored, answer)
}

function isStored(answer: string): boolean {
  using db = openForReading(join(store!, 'store.sqlite'))
  return db.prepare('SELECT 1 FROM _answers WHERE value = ?').get(JSON.stringify(answer)) !== undefined
}
