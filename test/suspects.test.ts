import { describe, expect, test } from 'vitest'
import type { WorkerExit } from '../src/engines/engine.ts'
import { explain, judge, type Verdict } from '../src/executor/suspects.ts'
import type { Lease, TaskEntry } from '../src/executor/task-entry.ts'
import type { WorkerHandle } from '../src/executor/worker-handle.ts'
import { runScripted } from './scripted-worker.ts'

/** The rules by which a lost worker is judged, each by itself. */

const SEGFAULT: WorkerExit = { code: null, signal: 'SIGSEGV' }
const LOST: WorkerExit = { code: null, signal: null, placeLost: true, reason: 'the node is gone' }

interface Held {
  readonly waiting?: boolean
  readonly started?: boolean
  readonly group?: number
  readonly never?: boolean
}

const task = (id: string) => ({ id, placesLost: 0, placesLostAlone: 0, options: {} }) as unknown as TaskEntry

/** What comes of the end of a worker that held these tasks. */
function end(
  tasks: readonly (readonly [TaskEntry, Held?])[],
  exit: WorkerExit = SEGFAULT,
  worker: Partial<Pick<WorkerHandle, 'careful' | 'expected' | 'exiting'>> = {},
) {
  const leases = new Map<number, Lease>()
  for (const [entry, { waiting = false, started = false, group = 0, never = false }] of tasks.map(
    ([one, held = {}]) => [one, held] as const,
  )) {
    Object.assign(entry, { options: { neverRerun: never } })
    leases.set(leases.size + 1, { entry, waitingCalls: waiting ? 1 : 0, started, group } as Lease)
  }
  const verdict = judge({ leases, careful: false, expected: false, ...worker } as unknown as WorkerHandle, exit)
  if (verdict.guilty) explain(verdict.guilty.entry)
  return names(verdict)
}

function names({ guilty, suspects, waiting, innocent }: Verdict) {
  const ids = (list: readonly Lease[]) => list.map(({ entry }) => entry.id)
  return {
    ...(guilty && { guilty: guilty.entry.id }),
    ...(suspects.length > 0 && { suspects: ids(suspects) }),
    ...(waiting.length > 0 && { waiting: ids(waiting) }),
    ...(innocent.length > 0 && { innocent: ids(innocent) }),
  }
}

const [a, b, c] = ['a', 'b', 'c'] as const

describe('a crash', () => {
  test('that we asked for is nobody’s fault', () => {
    expect(end([[task(a)]], SEGFAULT, { expected: true })).toEqual({ innocent: [a] })
  })

  test('is charged to whom the worker named, or to nobody if that one was answered before', () => {
    const exiting = (lease: number) => ({ exiting: { lease, error: {} } }) as unknown as Pick<WorkerHandle, 'exiting'>
    expect(end([[task(a)], [task(b)]], SEGFAULT, exiting(2))).toEqual({ guilty: b, innocent: [a] })
    expect(end([[task(a)], [task(b)]], SEGFAULT, exiting(9))).toEqual({ innocent: [a, b] })
    const lastWords = JSON.stringify({ blocked: true, lease: 1, stack: '' })
    expect(end([[task(a)], [task(b)]], { ...SEGFAULT, lastWords })).toEqual({ guilty: a, innocent: [b] })
  })

  test('is charged to whoever was alone; several are suspects', () => {
    expect(end([[task(a)]])).toEqual({ guilty: a })
    expect(end([[task(a)], [task(b)]])).toEqual({ suspects: [a, b] })
  })

  test('is not the fault of those that are known not to have started', () => {
    expect(end([[task(a), { never: true }], [task(b)]])).toEqual({ guilty: b, innocent: [a] })
    const careful = { careful: true }
    const group = 2
    expect(
      end(
        [
          [task(a), { group }],
          [task(b), { group, started: true }],
        ],
        SEGFAULT,
        careful,
      ),
    ).toEqual({
      ...{ guilty: b, innocent: [a] },
    })
  })

  test('is not charged to a task beside one that waits, before it was run apart', () => {
    const [parent, child] = [task(a), task(b)]
    expect(end([[parent, { waiting: true }], [child]])).toEqual({ suspects: [b], innocent: [a] })
    // Given apart, and yet beside another that waits: it was there both times, the other was not.
    expect(
      end([
        [task(c), { waiting: true }],
        [child, { group: 1 }],
      ]),
    ).toEqual({ guilty: b, innocent: [c] })
  })
})

describe('a task that waits', () => {
  const waiting = true

  test('is innocent once, then a suspect, and guilty if it was given alone', () => {
    const parent = task(a)
    expect(end([[parent, { waiting }]])).toEqual({ innocent: [a] })
    expect(end([[parent, { waiting }]])).toEqual({ waiting: [a] })
    expect(end([[parent, { waiting, group: 1 }]])).toEqual({ guilty: a })
  })

  test('is a suspect apart from those that ran', () => {
    const parent = task(a)
    expect(end([[parent, { waiting }], [task(b)], [task(c)]])).toEqual({ suspects: [b, c], innocent: [a] })
    expect(end([[parent, { waiting }], [task(b)], [task(c)]])).toEqual({ suspects: [b, c], waiting: [a] })
  })

  test('stays innocent if somebody else is charged each time', () => {
    const parent = task(a)
    for (let n = 0; n < 10; n++) {
      const child = task(b)
      expect(end([[parent, { waiting }], [child]])).toEqual({ suspects: [b], innocent: [a] })
      expect(end([[child, { group: 1 }]])).toEqual({ guilty: b })
    }
  })

  test('is guilty in the end, though its sub-tasks are always beside it', () => {
    const parent = task(a)
    const crash = (group: number) => end([[parent, { waiting, group }], [task(b)]])
    expect(crash(0)).toEqual({ suspects: [b], innocent: [a] })
    expect(crash(0)).toEqual({ suspects: [b], waiting: [a] })
    expect(crash(1)).toEqual({ suspects: [b], waiting: [a] })
    expect(crash(1)).toEqual({ guilty: a, innocent: [b] })
  })
})

describe('a lost place', () => {
  test('is nobody’s fault, however often', () => {
    const [one, two] = [task(a), task(b)]
    expect(end([[one], [two]], LOST)).toEqual({ innocent: [a, b] })
    expect(end([[one], [two]], LOST)).toEqual({ innocent: [a, b] })
    for (let n = 0; n < 20; n++) expect(end([[one], [two]], LOST)).toEqual({ suspects: [a, b] })
    for (let n = 0; n < 20; n++) expect(end([[one], [task(c)]], LOST)).toEqual({ suspects: [a], innocent: [c] })
    for (let n = 0; n < 20; n++) expect(end([[one]], LOST)).toEqual({ suspects: [a] })
  })

  test('counts only for those that may have run there', () => {
    const idle = task(a)
    for (let n = 0; n < 20; n++)
      expect(
        end(
          [
            [idle, { group: 2 }],
            [task(b), { group: 2, started: true }],
          ],
          LOST,
          { careful: true },
        ),
      ).toEqual({
        innocent: [a, b],
      })
  })

  test('is charged to a task that ran there alone, at the third time', () => {
    const one = task(a)
    for (let n = 0; n < 3; n++) end([[one]], LOST)
    const alone = () => end([[one, { group: 1, started: true }]], LOST, { careful: true })
    expect([alone(), alone(), alone()]).toEqual([{ suspects: [a] }, { suspects: [a] }, { guilty: a }])
    expect(alone()).toEqual({ suspects: [a] })
  })
})

describe('a run whose places are lost', () => {
  /** Each start of the task `long`, and whether it was announced: it runs with suspects only. */
  async function run(losses: number, others: number, maxAttempts = 1) {
    let starts = 0
    const ids = ['long', ...Array.from({ length: others }, (_, n) => `o${n}`)]
    const responses = await runScripted(
      ids,
      (message, worker) => {
        if (message.type !== 'run') return
        for (const item of message.tasks) {
          if (message.careful) worker.say({ type: 'started', leases: [item[0]] })
          if (item[3] !== 'long') worker.answer(item, 'done')
          else if (starts++ < losses) return worker.die(LOST)
          else worker.answer(item, 'done')
        }
      },
      { workers: 2, concurrency: 4, maxAttempts },
    )
    for (const [id, { status, attempts }] of responses)
      if (id !== 'long') expect([id, status, attempts]).toEqual([id, 'success', 1])
    const { status, attempts, error } = responses.get('long')!
    return { status, attempts, starts, message: error?.message }
  }

  test('charges nobody for five of them', async () => {
    expect(await run(5, 0)).toMatchObject({ status: 'success', attempts: 1 })
    expect(await run(5, 40)).toMatchObject({ status: 'success', attempts: 1 })
  })

  test('ends, if the same task loses them again and again', async () => {
    const message = expect.stringContaining('3 times a machine or its worker was lost while this task ran there alone')
    expect(await run(1000, 0)).toMatchObject({ status: 'crashed', attempts: 1, starts: 6, message })
    expect(await run(1000, 40, 2)).toMatchObject({ status: 'crashed', attempts: 2, starts: 9, message })
  })
})
