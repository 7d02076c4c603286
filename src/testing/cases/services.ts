import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { runTask } from '../../runners/runners.ts'
import type { ServiceContext } from '../../services.ts'
import { openForReading } from '../../store/open-for-reading.ts'
import { asksAll, asksAside, asksFor, crashesWaiting, takesParts } from '../agents.ts'
import { type Case, type EngineReference, skipWithoutReference } from '../case.ts'

const PARTS = 10_000
const BLOCKED_MS = 5000

/** A service that answers nobody, and how many wait for it. */
function endless() {
  const waiting = new Set<AbortSignal>()
  const never = (_: unknown, { signal }: ServiceContext) => {
    waiting.add(signal)
    signal.addEventListener('abort', () => waiting.delete(signal))
    return new Promise(() => {})
  }
  return { waiting, never }
}

/** Nobody waits any more, at once or soon. */
async function assertLeft(waiting: ReadonlySet<AbortSignal>): Promise<void> {
  for (const until = Date.now() + 20_000; waiting.size > 0 && Date.now() < until; ) await sleep(20)
  assert.equal(waiting.size, 0, 'requests of a task that is over go on')
}

/** What tasks ask the driver for. */
export const serviceCases: Case[] = [
  {
    name: 'services answer, at once, late or with an error, and what is large passes both ways',
    async run(kit) {
      const services = {
        double: (question: number) => question * 2,
        late: async (question: unknown) => {
          await sleep(100)
          return question
        },
        fails: () => {
          throw new TypeError('no such thing')
        },
      }
      const large = { text: 'large '.repeat(300_000), bytes: new Uint8Array(100_000) }
      const responses = await runTask(
        [
          asksFor.task({ service: 'double', question: 21 }),
          asksFor.task({ service: 'late', question: large }, { timeoutMs: 60_000 }),
          asksFor.task({ service: 'fails' }),
          asksFor.task({ service: 'nobody' }),
          asksAll.task({ service: 'double', count: 300 }),
        ],
        kit.conf({ services }),
      )
      const [double, late, fails, nobody, all] = [...responses.values()]
      assert.equal(double!.answer, 42)
      assert.deepEqual(late!.answer, large)
      assert.deepEqual(fails!.answer, { code: 'SERVICE_FAILED', message: "service 'fails' failed: no such thing" })
      assert.equal((nobody!.answer as { code: string }).code, 'SERVICE_UNKNOWN')
      assert.deepEqual(
        all!.answer,
        Array.from({ length: 300 }, (_, i) => i * 2),
      )
      assert.ok(late!.timing.waitedMs >= 90, 'the response does not say how long it waited')
    },
  },
  {
    name: `a service streams ${PARTS} parts, in order, and ends when nobody takes them`,
    async run(kit) {
      let ended = 0
      const services = {
        count: async function* (parts: number) {
          try {
            for (let i = 0; i < parts; i++) yield i
          } finally {
            ended++
          }
        },
      }
      const [all, some] = [
        await runTask(takesParts.task({ parts: PARTS }), kit.conf({ services })),
        await runTask(takesParts.task({ parts: PARTS, most: 100 }), kit.conf({ services })),
      ]
      assert.deepEqual(all.answer, { count: PARTS, inOrder: true })
      assert.deepEqual(some.answer, { count: 100, inOrder: true })
      for (const until = Date.now() + 20_000; ended < 2 && Date.now() < until; ) await sleep(20)
      assert.equal(ended, 2)
    },
  },
  {
    name: 'what a task has asked for ends with it: when it is cancelled, and when its worker is killed with 64 requests open',
    async run(kit) {
      const { waiting, never } = endless()
      const abort = new AbortController()
      const cancelled = runTask(
        asksFor.task({ service: 'never' }),
        kit.conf({ services: { never }, signal: abort.signal }),
      )
      while (waiting.size === 0) await sleep(10)
      abort.abort()
      assert.equal((await cancelled).status, 'cancelled')
      await assertLeft(waiting)
      const killed = await runTask(
        crashesWaiting.task(63),
        kit.conf({ services: { never, hello: () => waiting.size } }),
      )
      assert.equal(killed.status, 'crashed')
      await assertLeft(waiting)
    },
  },
  {
    name: 'the side thread of a worker is served: while the event loop is blocked if the engine has a side wire, else when it is free',
    async run(kit) {
      const asked: number[] = []
      const services = {
        time: () => {
          asked.push(Date.now())
          return 'now'
        },
      }
      const began = Date.now()
      const response = await runTask(asksAside.task(BLOCKED_MS), kit.conf({ services }))
      const { answer, whileBlocked } = response.answer as { answer: string; whileBlocked: boolean }
      assert.equal(answer, 'now')
      if (kit.hasSideWire) assert.ok(whileBlocked, `answered after ${asked[0]! - began} ms, when the loop was free`)
      else assert.ok(!whileBlocked)
    },
  },
  {
    name: 'answers that count survive a driver that is killed: the resumed run gets them, and the service is not asked again',
    async run({ reference }) {
      if (!reference) return skipWithoutReference('in which the driver is killed and its run resumed')
      const folder = mkdtempSync(join(tmpdir(), 'manyworlds-kit-'))
      const ledger = join(folder, 'ledger')
      const drive = (...kill: number[]) => runBilledDriver(reference, [folder, ledger, ...kill.map(String)])
      const lines = () => readFileSync(ledger, 'utf8').trimEnd().split('\n')
      await drive(1 + Math.floor(Math.random() * 20), Math.floor(Math.random() * 6))
      const before = answersIn(folder)
      const asked = lines().length
      assert.equal(await drive(0, 0), 0)
      const after = answersIn(folder)
      assert.equal(after.size, 24)
      assert.equal(lines().length - asked, 24 - before.size, 'what was answered is asked again')
      for (const [question, answer] of before) assert.equal(after.get(question), answer)
      rmSync(folder, { recursive: true })
    },
  },
]

/** The exit code of a driver of its own. */
function runBilledDriver({ module, export: name }: EngineReference, args: readonly string[]): Promise<number | null> {
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const script = fileURLToPath(new URL(`../billed-driver${extension}`, import.meta.url))
  const driver = spawn(process.execPath, [script, String(module), name, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return new Promise((resolve) => driver.once('close', (code) => resolve(code)))
}

/** The answers in the store, by what they begin with. */
function answersIn(store: string): Map<string, string> {
  using db = openForReading(join(store, 'store.sqlite'))
  const rows = db.prepare('SELECT value FROM _answers').all() as { value: string }[]
  return new Map(rows.map(({ value }) => (JSON.parse(value) as string).split(': ') as [string, string]))
}
