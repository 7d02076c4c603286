import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { runTask, shutdown } from '../../runners/runners.ts'
import { whoAmI } from '../agents.ts'
import { type Case, skipWithoutReference } from '../case.ts'

const GONE_WITHIN_MS = 60_000
const START_WITHIN_MS = 240_000

/** No process is left behind. */
export const endCases: Case[] = [
  {
    name: 'no process is left when the driver is killed, even with a busy loop and a child process in a task',
    needsProcess: true,
    async run({ reference }) {
      if (!reference) return skipWithoutReference('in which the driver is killed')
      const folder = mkdtempSync(join(tmpdir(), 'manyworlds-kit-'))
      const pidFile = join(folder, 'pids')
      const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
      const script = fileURLToPath(new URL(`../doomed-driver${extension}`, import.meta.url))
      const driver = spawn(process.execPath, [script, String(reference.module), reference.export, pidFile], {
        stdio: ['ignore', 'ignore', 'inherit'],
      })
      const pids = await waitForPids(pidFile, driver, 4)
      driver.kill('SIGKILL')
      await assertGone(pids)
      rmSync(folder, { recursive: true })
    },
  },
  {
    name: 'no process is left when the engine is stopped',
    needsProcess: true,
    async run(kit) {
      const responses = await runTask(
        Array.from({ length: 20 }, () => whoAmI.task(20)),
        kit.conf(),
      )
      const pids = [...new Set([...responses.values()].map(({ answer }) => answer as number))]
      assert.ok(pids.length > 0)
      await shutdown()
      await assertGone(pids)
    },
  },
]

async function waitForPids(file: string, driver: ChildProcess, wanted: number): Promise<number[]> {
  for (const until = Date.now() + START_WITHIN_MS; Date.now() < until; await sleep(50)) {
    const pids = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : []
    if (pids.length >= wanted) return pids
    if (driver.exitCode !== null) assert.fail(`the driver exited with code ${driver.exitCode} before its tasks ran`)
  }
  driver.kill('SIGKILL')
  return assert.fail('the tasks did not start')
}

async function assertGone(pids: readonly number[]): Promise<void> {
  let left = pids
  for (const until = Date.now() + GONE_WITHIN_MS; Date.now() < until; await sleep(50)) {
    left = pids.filter(isAlive)
    if (left.length === 0) return
  }
  assert.fail(`still alive: ${left.join(', ')}`)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  if (!existsSync('/proc/self/stat')) return true
  try {
    // A zombie process has ended; only its parent has not waited for it yet.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    // It has ended since the signal.
    return false
  }
}
