import { runTask } from '../runners/runners.ts'
import { busyLoop } from './agents.ts'
import type { EngineFactory } from './case.ts'

/** A driver that the kit kills: two workers, each with a busy loop and a child process. */
const [module, name, pidFile] = process.argv.slice(2) as [string, string, string]
const factory = ((await import(module)) as Record<string, EngineFactory>)[name]!
await runTask(
  [1, 2].map(() => busyLoop.task({ afterMs: 10, pidFile })),
  { cls: factory, workerNum: 2, concurrency: 1 },
)
