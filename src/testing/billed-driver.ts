import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { runTask, shutdown } from '../runners/runners.ts'
import { billed } from './agents.ts'
import type { EngineFactory } from './case.ts'

/** A driver whose tasks ask for answers that count. It kills itself so many milliseconds after it was asked for the given one. */
const [module, name, store, ledger, killAt, killAfterMs] = process.argv.slice(2) as string[]
const factory = ((await import(module!)) as Record<string, EngineFactory>)[name!]!
let asked = 0
const services = {
  bill: {
    durable: true,
    answer: async (question: string) => {
      appendFileSync(ledger!, `${question}\n`)
      if (++asked === Number(killAt)) setTimeout(() => process.kill(process.pid, 'SIGKILL'), Number(killAfterMs))
      await sleep(2)
      return `${question}: ${asked}`
    },
  },
}
await runTask(
  Array.from({ length: 6 }, (_, n) => billed.task({ name: `t${n}`, bills: 4 }, { id: `t${n}` })),
  { cls: factory, workerNum: 2, store: store!, runId: 'billed', resume: 'auto', services },
)
await shutdown()
