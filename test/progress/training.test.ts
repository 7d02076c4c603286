import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { jsonTraining } from '../../src/progress/training/json.ts'
import { trainingLine } from '../../src/progress/training/line.ts'
import { plainTraining } from '../../src/progress/training/plain.ts'
import { trainingSummary } from '../../src/progress/training/summary.ts'
import { TrainingTally } from '../../src/progress/training/tally.ts'
import { painter } from '../../src/text/paint.ts'
import { displayWidth } from '../../src/text/width.ts'
import type { EpochReport } from '../../src/train/pipeline/epoch-report.ts'
import type { TrainingObserver, TrainingStart } from '../../src/train/pipeline/observer.ts'
import type { EvalRow, EvaluationFigures, UpdateRow } from '../../src/train/pipeline/training-record.ts'

const FINISHED = { error: undefined, interrupted: false }
const start = (more: Partial<TrainingStart> = {}): TrainingStart => ({
  ...{
    id: 'brave-otter',
    file: '/runs/store.sqlite',
    agent: 'clerk',
    engineName: 'local',
    workerNum: 2,
    concurrency: 64,
  },
  ...{ tasks: { train: 80, validation: 10, test: 10 }, updates: [], evaluations: [], ...more },
})
const figures = (value: number): EvaluationFigures => ({
  ...{ success: { value, low: value - 0.1, high: value + 0.1 }, reward: null, withoutResult: 0 },
})
const update = (number: number, successRate: number | null, alarms: readonly string[] = []): UpdateRow => ({
  ...{
    number,
    epoch: 1 + Math.floor(number / 2),
    versionIn: number,
    versionOut: number + 1,
    members: [['t1', 1, null]],
  },
  ...{ batchSha: '', stateSha: '', collectMs: 1, trainMs: 1, curveSha: `curve ${number}` },
  report: {
    ...{ version: number + 1, episodes: 16, trained: 16, dropped: 0, skippedGroups: 0, length: 3, metrics: {} },
    ...{ reward: successRate, successRate, alarms, tokens: 0 },
  } as unknown as UpdateRow['report'],
})
const validation = (version: number, value: number): EvalRow => ({
  ...{ version, split: 'validation', run: '', tasks: 10, rollouts: 1, summary: figures(value) },
})
const epoch = (number: number, more: Partial<EpochReport> = {}): EpochReport =>
  ({
    ...{
      id: 'brave-otter',
      epoch: number,
      updates: 2 * number,
      version: 2 * number,
      trajectories: 32,
      successRate: 0.25,
    },
    ...{ reward: 0.25, length: 3, avgTokens: 0, loss: 0, metrics: {}, skippedGroups: 0, dropped: 0, alarms: [] },
    ...{
      collectMs: 1,
      trainMs: 1,
      staleness: 0,
      validation: { ...figures(0.5), version: 2 * number },
      best: 2 * number,
    },
    ...({ test: null, digest: '' } as object),
    ...more,
  }) as EpochReport

function listener() {
  const stream = new PassThrough()
  const lines = () =>
    String(stream.read() ?? '')
      .trimEnd()
      .split('\n')
  return { stream, lines }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** An epoch of two updates of 16 episodes, a second each. */
function oneEpoch(observer: Partial<TrainingObserver>, number: number): void {
  observer.goal?.({ epoch: number, epochs: 4, left: (5 - number) * 32 + 40 })
  for (const place of [0, 1]) {
    const row = update(2 * (number - 1) + place, 0.25 * number)
    observer.run?.(`update ${row.number}`, 16, `u${row.number}`)
    for (let episode = 0; episode < 16; episode++) {
      vi.advanceTimersByTime(1000)
      observer.episode?.(`u${row.number}`, false)
    }
    observer.update?.(row)
  }
  observer.evaluation?.(validation(2 * number, 0.2 * number))
  observer.epoch?.(epoch(number))
}

describe('plain lines of a training', () => {
  it('are one for each epoch, and one if nothing was said for 30 seconds', () => {
    const { stream, lines } = listener()
    const observer = plainTraining(stream)(start())
    oneEpoch(observer, 1)
    observer.notice?.('the disk is\x1b[2J slow')
    vi.advanceTimersByTime(60_000)
    expect(lines()).toEqual([
      '[brave-otter] started: 80 tasks, 10 for validation, 10 for the test; on local, 2 workers x 64; /runs/store.sqlite',
      expect.stringMatching(/^\[brave-otter\] 0:30 {2}epoch 1\/4 {2}update 1: 13\/16 {2}.*success 25\.0 % ▂ {2}ETA 2:/),
      '[brave-otter] 0:32  epoch 1/4: 2 updates, version 2; success 25.0 %; validation 50.0 % [40.0, 60.0]',
      '[brave-otter] the disk is\\x1b[2J slow',
      expect.stringMatching(/^\[brave-otter\] 1:02 {2}epoch 1\/4/),
      expect.stringMatching(/^\[brave-otter\] 1:32 {2}epoch 1\/4/),
    ])
  })

  it('end with what came of it, and what to do next', () => {
    const { stream, lines } = listener()
    const observer = plainTraining(stream)(start())
    for (const number of [1, 2, 3]) oneEpoch(observer, number)
    const test = { ...figures(0.8), version: 6, before: figures(0.1), difference: { value: 0.7, low: 0.6, high: 0.8 } }
    observer.epoch?.(epoch(4, { test }))
    observer.end?.(FINISHED)
    const summary = lines().slice(-9)
    expect(summary).toEqual([
      'training brave-otter finished in 1:36: 3 epochs, 6 updates, 96 episodes, 1.0/s',
      'test       80.0 % [70.0, 90.0] by version 6; 10.0 % [0.0, 20.0] before training;',
      '           difference 70.0 points [60.0, 80.0]',
      'best       version 6: 60.0 % [50.0, 70.0] on validation',
      'curve      ▂▂▄▄▆▆  success 25.0 % to 75.0 %',
      'digest     curve 5',
      'store      /runs/store.sqlite',
      expect.stringMatching(/ show .*brave-otter$/),
      expect.stringMatching(/ export .*brave-otter --policy FOLDER$/),
    ])
  })

  it('show what others wrote, and let it do nothing to the terminal', () => {
    const { stream, lines } = listener()
    const observer = plainTraining(stream)(start({ id: 'a\x1b]0;b', file: '/tmp/\x9bc\nd' }))
    observer.run?.('update \x1b[2J', 16, 'u')
    vi.advanceTimersByTime(30_000)
    for (const number of [0, 1]) observer.update?.(update(number, 0, [`entropy\x1b[31m\nis 0.0${number}`]))
    observer.epoch?.(epoch(1))
    observer.end?.({ error: new Error('\x1b[2J'), interrupted: false })
    const said = lines().join('\n')
    for (const control of ['\x1b', '\x9b']) expect(said).not.toContain(control)
    // An alarm that comes again with other figures is not said again.
    expect(said.match(/entropy.*/g)).toEqual(['entropy\\x1b[31m\\nis 0.00'])
  })
})

describe('the line of a training', () => {
  it('is never wider than asked, and leaves out whole fields', () => {
    const tally = new TrainingTally(start())
    oneEpoch(tally, 1)
    tally.run('update 2', 16, 'u2')
    const at = (width: number) => trainingLine(tally.snapshot(), { width, paint: painter(false), bar: true })
    for (let width = 1; width < 200; width++) expect(displayWidth(at(width))).toBeLessThanOrEqual(width)
    expect(at(200)).toMatch(
      /^\[\.{24}\] {2}epoch 1\/4 {2}update 2: 0\/16 {2}1\.0\/s {2}success 25\.0 % ▂▂ {2}validation 20\.0 % \[10\.0, 30\.0\] {2}ETA 2:/,
    )
    expect(at(35)).toBe('epoch 1/4  update 2: 0/16')
  })

  it('shows the collection that the learner waits for, and does not count restored episodes as fast ones', () => {
    const tally = new TrainingTally(start())
    tally.goal({ epoch: 1, epochs: 2, left: 100 })
    tally.run('update 0', 16, 'u0')
    for (let episode = 0; episode < 10; episode++) tally.episode('u0', true)
    vi.advanceTimersByTime(5000)
    expect(tally.snapshot()).toMatchObject({ done: 10, total: 16, perSecond: undefined, etaMs: undefined })
    tally.run('update 1', 16, 'u1')
    for (let episode = 0; episode < 8; episode++) tally.episode('u1', false)
    expect(tally.snapshot()).toMatchObject({ what: 'update 0', done: 10, total: 16 })
    for (let episode = 0; episode < 6; episode++) tally.episode('u0', false)
    expect(tally.snapshot()).toMatchObject({ what: 'update 1', done: 8, total: 16 })
  })

  it('knows what earlier sessions did', () => {
    const tally = new TrainingTally(
      start({ updates: [update(0, 0.5), update(1, null)], evaluations: [validation(2, 0.4)] }),
    )
    expect(tally.snapshot()).toMatchObject({ updates: 2, curve: [0.5], epoch: 1, version: 2, sessionEpisodes: 0 })
    expect(tally.best).toMatchObject({ version: 2 })
    tally.update(update(2, 0.6))
    const { episodes, sessionEpisodes } = tally.snapshot()
    expect(episodes).toBe(3 * sessionEpisodes)
    const summary = trainingSummary(tally, { error: undefined, interrupted: false }, { color: false })
    expect(summary).toContain(`3 updates, ${episodes} episodes; this session: ${sessionEpisodes} episodes in 0:00`)
  })
})

it('lines of JSON have each update once, without its members', () => {
  const { stream, lines } = listener()
  const observer = jsonTraining(stream)(start())
  oneEpoch(observer, 1)
  observer.end?.({ error: new Error('no'), interrupted: false })
  const events = lines().map((line) => JSON.parse(line) as { type: string })
  expect(events.map(({ type }) => type)).toEqual(['start', 'update', 'update', 'evaluation', 'epoch', 'summary'])
  expect(events[1]).not.toHaveProperty('members')
  expect(events.at(-1)).toMatchObject({ state: 'failed', error: { message: 'no' }, updates: 2, digest: 'curve 1' })
})
