import childProcess from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'
import workerThreads from 'node:worker_threads'

const refuse = (name: string) =>
  function refused(): never {
    throw new Error(
      `${name} in a unit test: a test that starts a process or a thread is not listed in UNIT of test/support/projects.ts`,
    )
  }

for (const name of ['exec', 'execFile', 'execFileSync', 'execSync', 'fork', 'spawn', 'spawnSync'] as const)
  childProcess[name] = refuse(name) as never
workerThreads.Worker = refuse('new Worker') as never
syncBuiltinESMExports()
