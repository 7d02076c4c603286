import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, test } from 'vitest'
import { slotQuery } from '../../dist/engines/spark/launcher.js'
import { makeSlotProgram } from '../../dist/engines/spark/slot-program.js'
import { Runners } from '../../dist/index.js'
import { neverEnds } from '../agents/exits.ts'
import { startNode } from '../nodes/daemon.ts'
import { pids, signal } from '../support/process-tree.ts'

/** Node may hang while it exits, and exit listeners may: the process is gone all the same, and soon. */

const HANG = fileURLToPath(new URL('../preloads/hang-at-exit.mjs', import.meta.url))
const HANGS = ['listener', 'shutdown'] as const

const folder = mkdtempSync(join(tmpdir(), 'mw-exit-'))
const started: { kill(): unknown }[] = []
afterAll(async () => {
  await Runners.shutdown()
  for (const one of started) await one.kill()
  rmSync(folder, { recursive: true, force: true })
})

describe.concurrent.each(HANGS)('where exit hangs in a %s', (hang) => {
  const env = { ...process.env, HANG: hang, NODE_OPTIONS: `--import ${HANG}` }

  test('a worker is gone, and its task has one answer', async ({ expect }) => {
    const file = join(folder, `pid-${hang}`)
    const response = await Runners.runTask(neverEnds.task({ hang, file }), { maxAttempts: 1 })
    expect(response).toMatchObject({ success: false, error: { code: 'PROCESS_EXIT' } })
    expect(isGone(Number(readFileSync(file, 'utf8')))).toBe(true)
  })

  test('a node is gone after SIGTERM', async ({ expect }) => {
    const daemon = await startNode({ env })
    started.push(daemon)
    process.kill(daemon.pid, 'SIGTERM')
    expect(await daemon.exited).toBe('SIGKILL')
  })

  test('a slot is gone when its driver cannot be reached', async ({ expect }) => {
    const executor = await startExecutor(1, env)
    await expect.poll(() => isGone(executor.slot)).toBe(true)
  })

  test('a slot is gone when its executor is', async ({ expect }) => {
    // Somebody listens, and says nothing.
    const silent = createServer()
    await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done))
    started.push({ kill: () => silent.close() })
    const connected = new Promise((done) => silent.once('connection', done))
    const executor = await startExecutor((silent.address() as AddressInfo).port, env)
    await connected
    executor.kill()
    await expect.poll(() => isGone(executor.slot)).toBe(true)
  })
})

test('whoever ends at once leaves nobody who waits for that', async ({ expect }) => {
  const daemon = await startNode()
  started.push(daemon)
  process.kill(daemon.pid, 'SIGTERM')
  expect(await daemon.exited).toBe(0)
  const guards = () => pids().filter((pid) => commandOf(pid).endsWith(`manyworlds-exit 40 ${daemon.pid} `))
  await expect.poll(guards).toEqual([])
})

const EXECUTOR = `const { spawn } = require('node:child_process')
const { script, row, env } = JSON.parse(require('node:fs').readFileSync(0, 'utf8'))
const child = spawn('bash', ['-c', script], { stdio: ['pipe', 'ignore', 'inherit'], env })
child.stdin.end(row)
console.log(child.pid)
setInterval(() => {}, 1000)`

/** A process that starts a slot as an executor of Spark does. */
async function startExecutor(port: number, env: NodeJS.ProcessEnv): Promise<{ slot: number; kill(): void }> {
  const script = /USING '(.*?)' AS/s.exec(slotQuery(process.execPath))![1]!
  const orders = JSON.stringify({ hosts: ['127.0.0.1'], port, token: 'mw_a-token-for-this-test-only' })
  const row = `0\t${orders}\t${await makeSlotProgram()}\n`
  const child = spawn(process.execPath, ['-e', EXECUTOR], { stdio: ['pipe', 'pipe', 'ignore'], cwd: folder })
  child.stdin.end(JSON.stringify({ script, row, env }))
  const line = await new Promise<Buffer>((done) => child.stdout.once('data', done))
  const slot = Number(line.toString())
  const kill = () => void child.kill('SIGKILL')
  started.push({
    kill: () => {
      kill()
      signal(slot, 'SIGKILL')
    },
  })
  return { slot, kill }
}

/** Not there, or dead and not yet seen by its parent. */
function isGone(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return true
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}
