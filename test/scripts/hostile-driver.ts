import { readFileSync } from 'node:fs'
import { Runners } from '../../dist/index.js'
import { forger, good } from '../agents/hostile.ts'

/** A driver with little memory, one task that forges what its worker says, and many that do their work. */
const [name = ''] = process.argv.slice(2)
const tasks = [
  forger.task(name, { id: 'forger', maxAttempts: 1, timeoutMs: 8000 }),
  ...Array.from({ length: 40 }, (_, n) => good.task(n, { id: `good${n}` })),
]
const responses = await Runners.runTask(tasks, { workerNum: 2, store: process.env.STORE ?? false, progress: false })
await Runners.shutdown()
const peakMb = Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024
console.log(
  JSON.stringify({ responses: [...responses].map(([id, { status, answer }]) => [id, status, answer]), peakMb }),
)
