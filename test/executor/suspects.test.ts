import { describe, expect, test } from 'vitest'
import type { WorkerExit } from '../../src/engines/engine.ts'
import { crashError, explain, judge, type Verdict } from '../../src/executor/suspects.ts'
import type { Lease, TaskEntry } from '../../src/executor/task-entry.ts'
import type { WorkerHandle } from '../../src/executor/worker-handle.ts'
import type { TaskItem } from '../../src/protocol/messages.ts'
import { runScripted, SCRIPTED_REF, type ScriptedWorker } from '../support/scripted-worker.ts'
import { SUB_TASKS_ASK } from '../support/sub-tasks-ask.ts'

/** The rules by which a lost worker is judged, each by itself. */

const SEGFAULT: WorkerExit = { code: null, signal: 'SIGSEGV' }
const LOST: WorkerExit = { code: null, signal: null, placeLost: true, reason: 'the node is gone' }

interface Held {
  readonly waiting?: boolean
  readonly started?: boolean
  readonly group?: number
  readonly never?: boolean
}

/** Given as the only suspect, and announced. */
const ALONE: Held = { group: 1, started: true }

const task = (id: string) => ({ id, placesLost: 0, placesLostAlone: 0, options: {} }) as unknown as TaskEntry

/** What comes of the end of a worker that held these tasks. */
function end(
  tasks: readonly (readonly [TaskEntry, Held?])[],
  exit: WorkerExit = SEGFAULT,
  worker: Partial<Pick<WorkerHandle, 'expected' | 'exiting'>> = {},
) {
  const leases = new Map<number, Lease>()
  for (const [entry, { waiting = false, started = waiting, group = 0, never = false }] of tasks.map(
    ([one, held = {}]) => [one, held] as const,
  )) {
    Object.assign(entry, { options: { neverRerun: never } })
    leases.set(leases.size + 1, { entry, waitingCalls: waiting ? 1 : 0, started, group } as Lease)
  }
  const verdict = judge({ leases, expected: false, ...worker } as unknown as WorkerHandle, exit)
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
  test('of a worker whose event loop was blocked says so in the error', () => {
    const lastWords = JSON.stringify({ blocked: true, stack: '' })
    const killed: WorkerExit = { code: null, signal: 'SIGKILL', lastWords }
    expect(crashError(killed).message).toBe(
      'the worker that ran this task ended (signal SIGKILL), because a task blocked its event loop beyond a timeout: this one or one beside it',
    )
    expect(crashError({ ...killed, lastWords: 'no JSON' }).message).toBe(
      'the worker that ran this task ended (signal SIGKILL)',
    )
  })

  test('that we asked for is nobody’s fault', () => {
    expect(end([[task(a)]], SEGFAULT, { expected: true })).toEqual({ innocent: [a] })
  })

  test('is charged to whom the worker named; if that one is not there, those that are run apart', () => {
    const exiting = (lease: number) => ({ exiting: { lease, error: {} } }) as unknown as Pick<WorkerHandle, 'exiting'>
    expect(end([[task(a)], [task(b)]], SEGFAULT, exiting(2))).toEqual({ guilty: b, innocent: [a] })
    const lastWords = JSON.stringify({ blocked: true, lease: 1, stack: '' })
    expect(end([[task(a)], [task(b)]], { ...SEGFAULT, lastWords })).toEqual({ guilty: a, innocent: [b] })
    const one = task(a)
    for (let n = 0; n < 9; n++)
      expect(end([[one, { started: true }], [task(b)]], SEGFAULT, exiting(9))).toEqual({ suspects: [a, b] })
    // It counts against none of them. A suspect alone could only have lied.
    expect(end([[one, ALONE]], SEGFAULT, exiting(9))).toEqual({ suspects: [a] })
    expect(end([[one, ALONE]], SEGFAULT, exiting(9))).toEqual({ guilty: a })
    // It had not started.
    expect(end([[task(a), { group: 1 }]], SEGFAULT, exiting(1))).toEqual({ suspects: [a] })
  })

  test('is no proof, however few were there', () => {
    expect(end([[task(a)]])).toEqual({ suspects: [a] })
    expect(end([[task(a), { started: true }]])).toEqual({ suspects: [a] })
    expect(end([[task(a), ALONE]])).toEqual({ suspects: [a] })
    expect(end([[task(a)], [task(b)]])).toEqual({ suspects: [a, b] })
  })

  test('is charged to a task that ran when a worker crashed before, and now ran alone', () => {
    const one = task(a)
    expect(end([[one, { started: true }], [task(b)]])).toEqual({ suspects: [a, b] })
    expect(end([[one, ALONE]])).toEqual({ guilty: a })
    // The next attempt needs the same proof.
    expect(end([[one, ALONE]])).toEqual({ suspects: [a] })
    expect(end([[one, ALONE]])).toEqual({ guilty: a })
  })

  test('does not count for a task that may not have started', () => {
    const one = task(a)
    for (let n = 0; n < 9; n++) expect(end([[one]])).toEqual({ suspects: [a] })
    expect(end([[one, ALONE]])).toEqual({ suspects: [a] })
  })

  test('does not count for a task beside which another was charged', () => {
    const [one, two] = [task(a), task(b)]
    const started = true
    expect(
      end([
        [one, { started }],
        [two, { started }],
      ]),
    ).toEqual({ suspects: [a, b] })
    expect(end([[two, ALONE]])).toEqual({ guilty: b })
    expect(end([[one, ALONE]])).toEqual({ suspects: [a] })
  })

  test('is not the fault of those that are known not to have started', () => {
    expect(end([[task(a), { never: true }], [task(b)]])).toEqual({ suspects: [b], innocent: [a] })
    const [one, two] = [task(a), task(b)]
    const both = () =>
      end([
        [one, { group: 2 }],
        [two, { group: 2, started: true }],
      ])
    expect(both()).toEqual({ suspects: [b], innocent: [a] })
    expect(both()).toEqual({ guilty: b, innocent: [a] })
    // Suspects whose workers crash before any of them starts stay apart.
    expect(
      end([
        [one, { group: 2 }],
        [two, { group: 2 }],
        [task(c), { never: true }],
      ]),
    ).toEqual({
      ...{ suspects: [a, b], innocent: [c] },
    })
  })

  test('is not charged to a suspect beside one that waits, or has waited: that one may have done it', () => {
    const child = task(b)
    expect(end([[child, { started: true }], [task(c)]])).toEqual({ suspects: [b, c] })
    expect(
      end([
        [task(a), { waiting: true }],
        [child, ALONE],
      ]),
    ).toEqual({ suspects: [b], innocent: [a] })
    expect(
      end([
        [task(a), { started: true }],
        [child, ALONE],
      ]),
    ).toEqual({ suspects: [a, b] })
    expect(end([[child, ALONE]])).toEqual({ guilty: b })
  })

  test('of a worker whose event loop was blocked is charged to the only task that ran', () => {
    const blocked = { ...SEGFAULT, lastWords: JSON.stringify({ blocked: true, stack: '' }) }
    expect(end([[task(a)]], blocked)).toEqual({ suspects: [a] })
    expect(end([[task(a), ALONE]], blocked)).toEqual({ guilty: a })
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
      expect(end([[child, ALONE]])).toEqual({ suspects: [b] })
      expect(end([[child, ALONE]])).toEqual({ guilty: b })
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
        ),
      ).toEqual({
        innocent: [a, b],
      })
  })

  test('is charged to a task that ran there alone, at the third time', () => {
    const one = task(a)
    for (let n = 0; n < 3; n++) end([[one]], LOST)
    const alone = () => end([[one, ALONE]], LOST)
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

test('a long task whose neighbors call process.exit one after the other is rerun each time, and never charged', async () => {
  const guilty = Array.from({ length: 60 }, (_, n) => `exits-${n}`)
  let left = guilty.length
  const error = { code: 'PROCESS_EXIT' as const, name: 'TaskError', message: 'it exited', stack: undefined }
  const held = new Map<ScriptedWorker, TaskItem>()
  const responses = await runScripted(['long', ...guilty], (message, worker) => {
    if (message.type !== 'run') return
    for (const item of message.tasks) {
      if (item[3] === 'long') {
        if (left === 0) return worker.answer(item, 'done')
        held.set(worker, item)
        worker.say({ type: 'hungry' })
      } else if (held.delete(worker)) {
        left--
        worker.say({ type: 'exiting', lease: item[0], error })
        return worker.die()
      }
    }
  })
  expect(responses.get('long')).toMatchObject({ status: 'success', attempts: 1 })
  for (const id of guilty)
    expect(responses.get(id)).toMatchObject({ status: 'crashed', error: { code: 'PROCESS_EXIT' } })
})

test('a task that asks for another sub-task in each rerun, which takes its worker down, is not rerun without end', async () => {
  let starts = 0
  const error = { code: 'PROCESS_EXIT' as const, name: 'TaskError', message: 'it exited', stack: undefined }
  const responses = await runScripted(
    ['top'],
    (message, worker) => {
      if (message.type !== 'run') return
      for (const item of message.tasks)
        if (item[3] === 'top') {
          const child = { id: `child-${starts++}`, ref: SCRIPTED_REF, params: undefined, input: 'child', options: {} }
          worker.say({ ...SUB_TASKS_ASK, request: 1, lease: item[0], body: { ordinal: 0, tasks: [child] } })
        } else {
          worker.say({ type: 'exiting', lease: item[0], error })
          return worker.die()
        }
    },
    { workers: 1, maxAttempts: 1 },
  )
  expect(responses.get('top')).toMatchObject({ status: 'crashed', attempts: 1, error: { code: 'RERUN_LIMIT' } })
  expect(starts).toBe(51)
})
