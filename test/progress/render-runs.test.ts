import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type RunRow, renderRuns } from '../../src/cli/render/runs.ts'
import { displayWidth } from '../../src/text/width.ts'

const NOW = Date.parse('2026-07-01T12:00:00Z')
const HOUR_MS = 3_600_000
const counts = { success: 4986, failed: 10, timeout: 3, crashed: 1, cancelled: 0 }
const ROWS: readonly RunRow[] = [
  {
    ...{
      runId: 'brave-otter',
      file: 'b.db',
      status: 'running',
      startedAt: NOW - 42_000,
      elapsedMs: 42_000,
      total: 5000,
      bytes: 1_234_567,
    },
    ...{ counts: { ...counts, success: 100 }, script: 'examples/many.ts' },
  },
  {
    ...{
      runId: 'nightly-7',
      file: 'n.db',
      status: 'finished',
      startedAt: NOW - 3 * HOUR_MS,
      endedAt: NOW - 2 * HOUR_MS,
      elapsedMs: HOUR_MS,
    },
    ...{ total: 5000, counts, script: 'jobs/evaluate.ts', bytes: 12_000 },
  },
  { runId: 'old', file: 'o.db', status: 'died', startedAt: NOW - 50 * HOUR_MS, counts, bytes: 0 },
  { runId: 'broken', file: 'x.db', status: 'unreadable', problem: 'not a database', bytes: 12 },
]

describe('the table of runs', () => {
  it('has a row for each, aligned', () => {
    expect(renderRuns(ROWS, { color: false, width: 100, now: NOW })).toBe(
      `
run          status      started        took      tasks     ok  failed    size  script
brave-otter  running     just now       0:42  114/5,000  87.7%      14  1.2 MB  examples/many.ts
nightly-7    finished    3 h ago     1:00:00      5,000  99.7%      14   12 kB  jobs/evaluate.ts
old          died        2 days ago               5,000  99.7%      14     0 B
broken       unreadable                                                   12 B
    not a database`.trimStart(),
    )
  })

  it('leaves out the least important columns where there is no room', () => {
    expect(renderRuns(ROWS, { color: false, width: 40, now: NOW }).split('\n')[1]).toBe(
      'brave-otter  running     114/5,000  87.7%'.slice(0, 34),
    )
    expect(renderRuns(ROWS, { color: false, width: 20, now: NOW }).split('\n')[1]).toBe('brave-otter')
  })

  it('says when there are none', () => {
    expect(renderRuns([], { color: false, width: 80, now: NOW })).toBe('no runs')
  })

  it('never gets beyond the edge, nor a control character to the terminal', () => {
    const text = fc.string({ unit: 'binary' })
    fc.assert(
      fc.property(text, text, text, fc.integer({ min: 20, max: 140 }), (runId, script, problem, width) => {
        const table = renderRuns([...ROWS, { ...ROWS[0]!, runId, script, problem }], { color: true, width, now: NOW })
        for (const line of table.split('\n').map(stripVTControlCharacters)) {
          expect(displayWidth(line)).toBeLessThanOrEqual(width)
          expect(line).not.toMatch(/\p{Cc}/u)
        }
      }),
    )
  })
})
