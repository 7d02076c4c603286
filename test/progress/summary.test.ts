import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { summaryText } from '../../src/progress/summary.ts'
import { summaryData } from '../../src/progress/summary-data.ts'
import { finishedTask, Tally } from '../../src/progress/tally.ts'
import { jsonLine } from '../../src/text/json.ts'
import { ownCommand } from '../../src/text/own-command.ts'
import { displayWidth } from '../../src/text/width.ts'
import { response } from './made-up.ts'

const FILE = '.manyworlds/runs/brave-otter.db'
// It is not a file of the folder where runs are looked for, and so is named by its path.
const SHOW = [...ownCommand(), 'show', FILE].join(' ')

/** The text with rows that were wrapped joined again. */
const stripWraps = (text: string): string => text.replaceAll(/\n {11}/g, ' ')

function someRun(): Tally {
  const usage = () => ({ inputTokens: 997_000, costUsd: 9.97 })
  const tally = new Tally({ runId: 'brave-otter', total: 1000, usage })
  for (let i = 1; i <= 1000; i++) {
    const restored = i <= 200
    if (i === 300) tally.add(finishedTask(response('#300', { status: 'failed', message: '\nfetch failed\nand more' })))
    else if (i % 400 === 0)
      tally.add({ id: `t${i}`, status: 'timeout', code: 'TASK_TIMEOUT', message: 'slow', runMs: 9000 })
    else tally.add({ id: `t${i}`, status: 'success', runMs: i, restored })
  }
  tally.retried()
  return tally
}

describe('the summary', () => {
  it('says what a person wants to know at the end', () => {
    expect(summaryText(someRun(), { file: FILE, elapsedMs: 62_000, color: false, width: 80 })).toBe(
      `
run brave-otter finished: 1,000 tasks; this session: 800 in 1:02, 13/s
  997 succeeded (99.7%), 1 failed, 2 timeout
failures   2  TASK_TIMEOUT  t400: slow
           1  TASK_THREW    #300: fetch failed
run time   p50 596 ms   p90 921 ms   p99 997 ms   max 9.0 s (this session)
slowest    this session:
            9.0 s  t400 (timeout)
            9.0 s  t800 (timeout)
            1.0 s  t1000
           999 ms  t999
           998 ms  t998
retries    1 (this session)
restored   200, done in an earlier session
usage      997,000 tokens in, $9.97
run file   .manyworlds/runs/brave-otter.db
           ${SHOW}
           ${SHOW} t400`.trimStart(),
    )
  })

  it('says that agents printed what was not shown', () => {
    const options = { color: false, width: 200, ending: { error: undefined, interrupted: false } }
    const text = (hiddenLines: number, file?: string) =>
      summaryText(someRun(), { ...options, ending: { ...options.ending, hiddenLines }, file })
    const hint = 'agents printed 12 lines; --show-logs (showLogs: true) prints them'
    expect(text(12).split('\n')).toContain(`printed    ${hint} (this session)`)
    expect(stripWraps(text(12, FILE))).toContain(`printed    this session: ${hint}, or: ${SHOW} --logs`)
    expect(text(0, FILE)).not.toContain('printed')
    expect(summaryText(someRun(), { file: FILE, color: false })).not.toContain('printed')
  })

  it('lists the ten most frequent causes of failures, and counts the others', () => {
    const tally = new Tally({ runId: 'r', total: 25 })
    for (let i = 0; i < 25; i++)
      tally.add(finishedTask(response(`t${i}`, { status: 'failed', message: `${'abcdefghijklm'[i % 13]} is broken` })))
    const text = summaryText(tally, { color: false, width: 100 })
    expect(text.match(/TASK_THREW/g)).toHaveLength(10)
    expect(text).toContain('… and 3 other causes, of 5 tasks')
  })

  it('of a sample, says from how many it is, unless it has all of them', () => {
    const said = (sampledFrom: number) =>
      summaryText(new Tally({ runId: 'r', total: 600, sampledFrom }), { color: false })
    expect(said(8000)).toContain('600 tasks, sampled from 8,000')
    expect(said(600)).not.toContain('sample')
  })

  it('of a sample, says what all tasks would cost if they are like it', () => {
    const tally = new Tally({ runId: 'r', total: 2, sampledFrom: 100, usage: () => ({ inputTokens: 20, costUsd: 1 }) })
    for (const id of ['a', 'b']) tally.add({ id, status: 'success', runMs: 1 })
    expect(summaryText(tally, { color: false, width: 100 })).toContain(
      'usage      20 tokens in, $1.00\n           all 100 tasks, if they are like these: about 1,000 tokens in, $50.00',
    )
  })

  it('says how a run ended that did not come to its end', () => {
    const tally = new Tally({ runId: 'r', total: 10 })
    tally.add({ id: 'a', status: 'success', runMs: 1 })
    const interrupted = summaryText(tally, { ending: { error: undefined, interrupted: true }, color: false })
    expect(interrupted).toMatch(/^run r interrupted after 0:00: 1 of 10 tasks/)
    const error = new Error('the disk is full\nreally')
    const failed = summaryText(tally, { ending: { error, interrupted: false }, color: false })
    expect(failed).toMatch(/^run r failed after 0:00: 1 of 10 tasks/)
    // It is thrown, and said by whoever catches it.
    expect(failed).not.toContain('disk')
    expect(failed).not.toContain('run file')
  })

  it('can be made of a run that is looked at later', () => {
    const tally = new Tally({ runId: 'r', total: 10 })
    tally.add({ id: 'a', status: 'success', runMs: 1 })
    const head = (state: 'running' | 'died' | 'failed', error?: string) =>
      summaryText(tally, { state, error, elapsedMs: 62_000, color: false }).split('\nrun time')[0]
    expect(head('running')).toBe('run r running for 1:02: 1 of 10 tasks, 58/h\n  1 succeeded (100%)')
    expect(head('died')).toBe('run r died: 1 of 10 tasks\n  1 succeeded (100%)')
    expect(head('failed', 'the disk is full')).toContain('\n  the disk is full')
    // Whoever reads this has just typed that command.
    expect(summaryText(tally, { state: 'finished', file: FILE, color: false })).not.toContain(`${SHOW}\n`)
  })

  it('has commands that can be copied into a shell', () => {
    const tally = new Tally({ runId: 'my run' })
    tally.add({ id: '#3', status: 'failed', code: 'TASK_THREW', message: '', runMs: 1 })
    expect(summaryText(tally, { file: FILE, color: false })).toContain(`${SHOW} '#3'`)
  })

  it('says in a file or a pipe why tasks failed, to the end', () => {
    const tally = new Tally({ runId: 'r' })
    const message = `model 'm': the server answered HTTP 404: ${'the model does not exist '.repeat(6)}(at http://server)`
    tally.add({ id: 'task-1', status: 'failed', code: 'MODEL_INVALID_REQUEST', message, runMs: 1 })
    const whole = `failures   1  MODEL_INVALID_REQUEST  task-1: ${message}\n`
    expect(summaryText(tally, { color: false })).toContain(whole)
    expect(summaryText(tally, { color: false, width: 100, isPipe: true })).toContain(whole)
    expect(summaryText(tally, { color: false, width: 100 })).not.toContain(whole)
  })

  it('is there for a run without tasks', () => {
    expect(summaryText(new Tally({ runId: 'r', total: 0 }), { color: false, elapsedMs: 0 })).toBe(
      'run r finished in 0:00: 0 tasks',
    )
  })

  it('fits its width where texts of users are concerned, and lets no control character through', () => {
    const text = fc.string({ unit: 'binary' })
    fc.assert(
      fc.property(text, text, fc.integer({ min: 40, max: 120 }), (id, message, width) => {
        const tally = new Tally({ runId: 'r' })
        for (let i = 0; i < 4; i++) tally.add({ id, status: 'failed', code: 'TASK_THREW', message, runMs: i })
        const lines = summaryText(tally, { color: true, width }).split('\n').map(stripVTControlCharacters)
        for (const line of lines) {
          expect(displayWidth(line)).toBeLessThanOrEqual(width)
          expect(line).not.toMatch(/\p{Cc}/u)
        }
      }),
    )
  })

  it('is plain data as well', () => {
    const data = JSON.parse(jsonLine(summaryData(someRun(), { file: FILE, elapsedMs: 80_000 })))
    expect(data).toMatchObject({
      runId: 'brave-otter',
      state: 'finished',
      file: FILE,
      total: 1000,
      done: 1000,
      restored: 200,
      perSecond: 10,
      failures: [{ code: 'TASK_TIMEOUT', count: 2 }, { code: 'TASK_THREW' }],
    })
    expect(data).not.toHaveProperty('etaMs')
  })
})
