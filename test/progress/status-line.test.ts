import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StatusFigures } from '../../src/progress/combined.ts'
import { statusLine } from '../../src/progress/status-line.ts'
import { painter } from '../../src/text/paint.ts'
import { displayWidth } from '../../src/text/width.ts'

const FIGURES: StatusFigures = {
  total: 5000,
  done: 1234,
  succeeded: 1220,
  failed: 14,
  cancelled: 0,
  running: 128,
  restored: 0,
  retries: 3,
  perSecond: 412.3,
  etaMs: 9100,
  waiting: [],
}
const line = (width: number, more: Partial<StatusFigures> = {}, bar = false) =>
  statusLine({ ...FIGURES, ...more }, { width, paint: painter(false), bar })

describe('the status line', () => {
  it('says all there is to say where there is room', () => {
    expect(line(80)).toBe('1,234/5,000  24%  ok 1,220  failed 14  running 128  retries 3  412/s  ETA 0:09')
    expect(line(110, {}, true)).toMatch(/^\[#{5}\.{19}\] {2}1,234\/5,000 {2}24%/)
  })

  it('does not count cancelled tasks as failed', () => {
    expect(line(80, { failed: 10, cancelled: 4, retries: 0, etaMs: undefined })).toBe(
      '1,234/5,000  24%  ok 1,220  failed 10  cancelled 4  running 128  412/s',
    )
  })

  it('leaves out whole fields where there is none, the least important first', () => {
    expect(line(60)).toBe('1,234/5,000  24%  failed 14  running 128  412/s  ETA 0:09')
    expect(line(40)).toBe('1,234/5,000  24%  failed 14  ETA 0:09')
    expect(line(20)).toBe('1,234/5,000  24%')
    expect(line(10)).toBe('24%')
  })

  it('says what calls wait for, and that other models have a queue too', () => {
    const small = { model: 'small', queued: 412, perSecond: 38 }
    expect(line(110, { retries: 0, waiting: [small] })).toBe(
      '1,234/5,000  24%  ok 1,220  failed 14  running 128  waiting for small: 412 queued, 38/s  412/s  ETA 0:09',
    )
    const big = { model: 'big', queued: 3, perSecond: 0 }
    expect(line(200, { waiting: [small, big] })).toContain('waiting for small: 412 queued, 38/s (and 1 model more)')
    expect(line(200, { waiting: [big] })).toContain('  waiting for big: 3 queued  ')
    expect(line(200, { waiting: [{ ...small, failed: 7 }] })).toContain(
      'waiting for small: 412 queued, no answer yet, 7 failed',
    )
    expect(line(200, { waiting: [{ ...small, rateLimited: 57 }] })).toContain(
      'waiting for small: 412 queued, no answer yet, 57 rate-limited',
    )
    expect(line(200, { waiting: [{ ...small, failed: 7, rateLimited: 57 }] })).toContain(
      'no answer yet, 7 failed, 57 rate-limited  ',
    )
    expect(line(75, { waiting: [small] })).toBe(
      '1,234/5,000  24%  failed 14  waiting for small: 412 queued, 38/s  ETA 0:09',
    )
  })

  it('says nothing that is not known', () => {
    expect(
      line(80, {
        total: undefined,
        perSecond: undefined,
        etaMs: undefined,
        retries: 0,
        done: 3,
        succeeded: 3,
        failed: 0,
      }),
    ).toBe('3 done  ok 3  running 128')
  })

  it('is never wider than asked, whatever the numbers', () => {
    const number = fc.integer({ min: 0, max: 10 ** 12 })
    const maybe = fc.option(fc.double({ min: 0, max: 1e9, noNaN: true }), { nil: undefined })
    fc.assert(
      fc.property(
        fc.record({
          total: fc.option(number, { nil: undefined }),
          ...{
            done: number,
            succeeded: number,
            failed: number,
            cancelled: number,
            running: number,
            restored: number,
            retries: number,
          },
          ...{ perSecond: maybe, etaMs: maybe },
          waiting: fc.array(
            fc.record({ model: fc.string({ unit: 'grapheme' }), queued: number, perSecond: fc.double() }),
          ),
        }),
        fc.integer({ min: 1, max: 250 }),
        fc.boolean(),
        fc.option(fc.string({ unit: 'grapheme' }), { nil: undefined }),
        (figures, width, bar, label) => {
          const text = statusLine(figures, { width, paint: painter(true), bar, label })
          expect(displayWidth(stripVTControlCharacters(text))).toBeLessThanOrEqual(width)
          expect(text).not.toContain('\n')
        },
      ),
      { numRuns: 2000 },
    )
  })
})
