import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { SharedBlob } from '../../blobs.ts'
import { runTask, streamTask } from '../../runners/runners.ts'
import type { TaskResponse } from '../../task.ts'
import { obedient, whoAmI } from '../agents.ts'
import { diesLoading, loadsLarge, seesReplaced, setsUpBlob, usesBlob } from '../blob-agents.ts'
import type { Case } from '../case.ts'

const MB = 1_000_000
const LARGE_BYTES = 100 * MB
/** A worker that has not noticed a cancellation after this time would be killed. */
const CANCEL_WITHIN_MS = 5000
/** A second worker may still have to start. */
const BOTH_WITHIN_MS = 120_000

interface Used {
  readonly sha256?: string
  readonly bytes: number
  readonly copies: number
  readonly pid: number
  readonly code?: string
}

let next = 1
/** Makes bytes that no other case has. */
function newBytes(size: number): Uint8Array {
  const bytes = new Uint8Array(size)
  const seed = next++
  for (let i = 0; i < size; i += 64) bytes[i] = (i >> 6) * seed
  if (size > 8) new DataView(bytes.buffer).setFloat64(0, Math.random())
  return bytes
}

const answersOf = (responses: Map<string, { answer?: unknown }>) =>
  [...responses.values()].map(({ answer }) => answer as Used)

/** Blobs that a run sends to its workers. */
export const blobCases: Case[] = [
  {
    name: 'a blob of some megabytes reaches the tasks of all workers, and each worker loads it once; an empty blob works too',
    needsProcess: true,
    async run(kit) {
      const weights = newBytes(8 * MB)
      const sha256 = hash('sha256', weights)
      const copies = new Map<number, number>()
      // Repeat until both workers have run some of the tasks.
      for (const until = Date.now() + BOTH_WITHIN_MS; copies.size < 2 && Date.now() < until; ) {
        const tasks = Array.from({ length: 8 }, () => usesBlob.task({ name: 'weights', ms: 20 }))
        const responses = await runTask(tasks, kit.conf({ concurrency: 2, blobs: { weights } }))
        for (const used of answersOf(responses)) {
          assert.equal(used.sha256, sha256)
          copies.set(used.pid, Math.max(used.copies, copies.get(used.pid) ?? 0))
        }
      }
      assert.deepEqual([...copies.values()], [1, 1])
      const empty = await runTask(usesBlob.task({ name: 'empty' }), kit.conf({ blobs: { empty: new Uint8Array(0) } }))
      assert.equal((empty.answer as Used).bytes, 0)
      assert.equal((empty.answer as Used).sha256, hash('sha256', ''))
    },
  },
  {
    name: 'a blob that is replaced during a run reaches later tasks; a task that has read it keeps the old content',
    async run(kit) {
      const [first, second] = [newBytes(2 * MB), newBytes(3 * MB)]
      const weights = new SharedBlob(first)
      const services = { replace: () => weights.replace(second) }
      const responses = await runTask(
        [seesReplaced.task('weights', { id: 'early' }), usesBlob.task({ name: 'weights' }, { id: 'late' })],
        kit.conf({ sequenceDependent: true, services, blobs: { weights } }),
      )
      const before = hash('sha256', first)
      assert.deepEqual(responses.get('early')!.answer, { before, after: before })
      assert.equal((responses.get('late')!.answer as Used).sha256, hash('sha256', second))
      assert.equal(await weights.sha256, hash('sha256', second))
    },
  },
  {
    name: 'the setup of an agent gets a blob by its hash, even if the task that caused the setup is cancelled',
    async run(kit) {
      const weights = newBytes(16 * MB)
      const sha256 = hash('sha256', weights)
      const agent = setsUpBlob.withParams({ sha256 })
      const conf = kit.conf({ blobs: { weights } })
      const abort = new AbortController()
      const first = runTask(agent.task(0), { ...conf, signal: abort.signal })
      const others = runTask([agent.task(1), agent.task(1), agent.task(1)], conf)
      setTimeout(() => abort.abort(), 20)
      assert.match((await first).status, /^(cancelled|success)$/)
      for (const { answer } of (await others).values()) assert.equal(answer, sha256)
    },
  },
  {
    name: 'a blob of an ended run, and a blob that the run does not have, are errors with a code',
    async run(kit) {
      const weights = newBytes(MB)
      const sha256 = hash('sha256', weights)
      const ask = async (name: string, blobs: Record<string, Uint8Array>) =>
        (await runTask(usesBlob.task({ name }), kit.conf({ blobs }))).answer as Used
      assert.equal((await ask(sha256, { weights })).sha256, sha256)
      assert.equal((await ask(sha256, { other: newBytes(10) })).code, 'BLOB_GONE')
      assert.equal((await ask('wieghts', { weights })).code, 'BLOB_UNKNOWN')
    },
  },
  {
    name: 'if a task kills its worker while it loads a blob, only that task crashes; the others get the blob in another worker',
    needsProcess: true,
    async run(kit) {
      const weights = newBytes(32 * MB)
      const sha256 = hash('sha256', weights)
      const users = Array.from({ length: 6 }, (_, i) => usesBlob.task({ name: 'weights' }, { id: `user-${i}` }))
      const killers = [1, 30].map((ms) => diesLoading.task({ name: 'weights', ms }, { id: `killer-${ms}` }))
      const responses = await runTask([...killers, ...users], kit.conf({ blobs: { weights } }))
      for (const [id, { status, answer }] of responses)
        if (id.startsWith('killer')) assert.equal(status, 'crashed')
        else assert.equal((answer as Used | undefined)?.sha256, sha256, id)
    },
  },
  {
    name: `cancellations overtake a blob of ${LARGE_BYTES / MB} MB`,
    needsProcess: true,
    async run(kit) {
      // Make sure that the workers are running and have loaded the code.
      const warm = await runTask([whoAmI.task(50), whoAmI.task(50), obedient.task(1)], kit.conf({ concurrency: 4 }))
      const pids = new Set([...warm.values()].map(({ worker }) => worker!.pid))
      const weights = newBytes(LARGE_BYTES)
      weights[LARGE_BYTES - 1] = 42
      const abort = new AbortController()
      let cancelledAt = 0
      const begin = () => {
        cancelledAt ||= performance.now()
        abort.abort()
      }
      const conf = kit.conf({ concurrency: 4, services: { begin }, blobs: { weights } })
      const waits = Array.from({ length: 4 }, () => obedient.task(120_000))
      const cancelled = runTask(waits, { ...conf, signal: abort.signal }).then((responses) => ({
        statuses: [...responses.values()].map(({ status }) => status),
        ms: performance.now() - cancelledAt,
      }))
      const loads = Array.from({ length: 4 }, () => loadsLarge.task('weights'))
      const loaded: TaskResponse[] = []
      let loadedMs = 0
      for await (const response of streamTask(loads, conf)) {
        loadedMs ||= performance.now() - cancelledAt
        loaded.push(response)
      }
      const { statuses, ms } = await cancelled
      assert.deepEqual(statuses, ['cancelled', 'cancelled', 'cancelled', 'cancelled'])
      // On a slow machine it may take longer, but then the blob takes even longer.
      const limitMs = Math.max(CANCEL_WITHIN_MS, loadedMs)
      assert.ok(
        ms < limitMs,
        `it took ${Math.round(ms)} ms; the first task had the blob after ${Math.round(loadedMs)} ms`,
      )
      assert.equal(loaded.length, 4)
      for (const { answer, worker } of loaded) {
        assert.deepEqual({ ...(answer as object), pid: 0 }, { bytes: LARGE_BYTES, last: 42, pid: 0 })
        assert.ok(pids.size < 2 || pids.has(worker!.pid), 'a worker was killed because a cancellation did not reach it')
      }
    },
  },
]
