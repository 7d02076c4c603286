import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { chooseDisplay } from '../../src/progress/choose.ts'
import { jsonLines } from '../../src/progress/json-lines.ts'
import { plainLines } from '../../src/progress/plain-lines.ts'
import { progressCallback } from '../../src/progress/progress-callback.ts'
import type { RunProgress } from '../../src/progress/run-progress.ts'
import { response, runStart } from './made-up.ts'

const FINISHED = { error: undefined, interrupted: false }

/** A stream and the lines that were written to it. */
function listener() {
  const stream = new PassThrough()
  return {
    stream,
    lines: () =>
      String(stream.read() ?? '')
        .trimEnd()
        .split('\n'),
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('plain lines', () => {
  it('are few: one at the start, one every ten seconds, and the summary', () => {
    const { stream, lines } = listener()
    const run = plainLines(stream)(runStart({ total: 100_000 }))
    for (let i = 0; i < 35_000; i++) {
      run.response(response(`t${i}`))
      vi.advanceTimersByTime(1)
    }
    run.notice('the disk is\x1b[2J slow')
    run.end(FINISHED)
    expect(lines()).toEqual([
      '[brave-otter] started: 100,000 tasks on local, 4 workers x 64; .manyworlds/runs/brave-otter.db',
      '[brave-otter] 0:10  10,000/100,000  10%  ok 10,000  running 12  1,000/s  ETA 1:30',
      '[brave-otter] 0:20  20,000/100,000  20%  ok 20,000  running 12  1,000/s  ETA 1:20',
      // A quarter of the way.
      '[brave-otter] 0:25  25,000/100,000  25%  ok 25,000  running 12  1,000/s  ETA 1:15',
      '[brave-otter] 0:35  34,999/100,000  34%  ok 34,999  running 12  1,000/s  ETA 1:05',
      '[brave-otter] the disk is\\x1b[2J slow',
      'run brave-otter finished in 0:35: 35,000 of 100,000 tasks, 1,000/s',
      '  35,000 succeeded (100%)',
      ...Array.from({ length: 8 }, () => expect.any(String)),
    ])
  })

  it('do not come at every quarter of a run that is over at once', () => {
    const { stream, lines } = listener()
    const run = plainLines(stream)(runStart({ total: 4, file: undefined }))
    for (let i = 0; i < 4; i++) run.response(response(`t${i}`))
    run.end(FINISHED)
    expect(lines().filter((line) => line.startsWith('['))).toEqual([
      '[brave-otter] started: 4 tasks on local, 4 workers x 64',
    ])
  })

  it('say for which model calls wait, and at the end what was asked of it', () => {
    const { stream, lines } = listener()
    const waiting = [{ model: 'small', queued: 412, perSecond: 38 }]
    const used = [
      { model: 'small', calls: 1512, tokens: 120_431, rateLimited: 3, failed: 0 },
      { model: 'judge-1', calls: 1, tokens: 0, rateLimited: 0, failed: 2 },
    ]
    const run = plainLines(stream)(runStart({ models: { waiting, used } }))
    vi.advanceTimersByTime(10_000)
    run.response({ ...response('a'), timing: { queuedMs: 0, runMs: 90_000, waitedMs: 84_000 } })
    run.end(FINISHED)
    const said = lines()
    expect(said[1]).toBe('[brave-otter] 0:10  0/100  0%  ok 0  running 12  waiting for small: 412 queued, 38/s')
    expect(said).toContain('waited     1:24 min in all, 1:24 min a task; timeouts do not count it')
    expect(said).toContain('models     small    1,512 calls, 120,431 tokens, 3 rate-limited')
    expect(said).toContain('           judge-1  1 call, 2 failed tries')
  })

  it('know no percentage before the number of tasks is known', () => {
    const { stream, lines } = listener()
    const run = plainLines(stream)(runStart({ total: undefined, resumed: true }))
    run.response(response('a', { restored: true }))
    vi.advanceTimersByTime(10_000)
    run.total(8)
    vi.advanceTimersByTime(10_000)
    run.end(FINISHED)
    expect(lines().slice(0, 3)).toEqual([
      expect.stringContaining('resumed: tasks on local'),
      '[brave-otter] 0:10  1 done  ok 1  running 12  restored 1',
      '[brave-otter] 0:20  1/8  12%  ok 1  running 12  restored 1',
    ])
  })
})

describe('JSON lines', () => {
  it('are one object per event', () => {
    const { stream, lines } = listener()
    const run = jsonLines(stream)(runStart({ total: undefined }))
    run.response(response('a', { answer: new Map([['big', 5n]]) }))
    run.response(response('b', { status: 'failed', message: 'no\nway', restored: true }))
    run.retry('c', 'TASK_THREW', 'again')
    run.total(3)
    vi.advanceTimersByTime(1000)
    run.notice('wait')
    run.end({ error: new Error('broken'), interrupted: false })
    const at = expect.any(Number)
    const events = lines().map((line) => JSON.parse(line) as { runId: string })
    expect(events.every(({ runId }) => runId === 'brave-otter')).toBe(true)
    expect(events).toMatchObject([
      { type: 'start', at, engineName: 'local', workerNum: 4, concurrency: 64, resumed: false },
      {
        type: 'response',
        ...{ id: 'a', status: 'success', success: true, agentName: 'made-up', answer: { big: '5' }, attempts: 1 },
        ...{ timing: { runMs: 10 }, worker: { id: 'local-0' }, usage: {}, restored: false },
      },
      { type: 'response', id: 'b', success: false, error: { code: 'TASK_THREW', message: 'no\nway' }, restored: true },
      { type: 'retry', id: 'c', code: 'TASK_THREW', message: 'again' },
      { type: 'total', total: 3 },
      { type: 'progress', done: 2, total: 3, retries: 1 },
      { type: 'notice', message: 'wait' },
      { type: 'summary', state: 'failed', error: { message: 'broken' }, done: 2 },
    ])
  })

  it('give an answer of undefined as null, so that there is one', () => {
    const { stream, lines } = listener()
    const answer = { ...response('a'), answer: undefined } as ReturnType<typeof response>
    jsonLines(stream)(runStart()).response(answer)
    expect(JSON.parse(lines()[1]!)).toHaveProperty('answer', null)
  })
})

it('a callback is told about once a second, only of news, and at the end', () => {
  const told: RunProgress[] = []
  const run = progressCallback((progress) => told.push(progress))(runStart())
  vi.advanceTimersByTime(3000)
  run.response(response('a'))
  run.response(response('b'))
  vi.advanceTimersByTime(3000)
  run.end(FINISHED)
  expect(told.map(({ done }) => done)).toEqual([0, 2, 2])
})

it('a callback is told again and again while calls wait for a model, although nothing happens', () => {
  const told: RunProgress[] = []
  let queued = 3
  const models = {
    get waiting() {
      return queued === 0 ? [] : [{ model: 'small', queued, perSecond: 1 }]
    },
    used: [],
  }
  const run = progressCallback((progress) => told.push(progress))(runStart({ models }))
  for (; queued > 0; queued--) vi.advanceTimersByTime(1000)
  vi.advanceTimersByTime(3000)
  run.end(FINISHED)
  expect(told.map(({ waiting }) => waiting.map((queue) => queue.queued))).toEqual([[3], [2], [1], []])
})

describe('the choice of a display', () => {
  it('is none if nobody wants one, and JSON if that is wanted', () => {
    const { stream, lines } = listener()
    const wishes = { progress: true, json: false, quiet: false, stream }
    expect(chooseDisplay({ ...wishes, progress: false })).toBeUndefined()
    expect(chooseDisplay({ ...wishes, quiet: true })).toBeUndefined()
    chooseDisplay({ ...wishes, json: true, quiet: true })!(runStart())
    expect(lines()[0]).toMatch(/^{"type":"start"/)
    chooseDisplay(wishes)!(runStart())
    expect(lines()[0]).toMatch(/^\[brave-otter\] started/)
  })
})

it('a run goes on when nobody listens any more', () => {
  const { stream } = listener()
  const run = plainLines(stream)(runStart())
  stream.emit('error', new Error('EPIPE'))
  run.end(FINISHED)
})
