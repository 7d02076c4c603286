import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { escapeControls } from '../../src/text/escape-controls.ts'
import { inline } from '../../src/text/inline.ts'
import { jsonLine, jsonPreview } from '../../src/text/json.ts'
import { shellWord } from '../../src/text/own-command.ts'
import { bytes, clock, duration, percent, precisePercent, rate, usageText } from '../../src/text/quantities.ts'
import { cut, displayWidth } from '../../src/text/width.ts'
import { wrap } from '../../src/text/wrap.ts'

const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.string())

describe('quantities', () => {
  it.each([
    [clock(0), '0:00'],
    [clock(9400), '0:09'],
    [clock(754_000), '12:34'],
    [clock(3_723_000), '1:02:03'],
    [clock(2 * 86_400_000 + 11_045_000), '2 d 03:04:05'],
    [duration(0.43), '0.4 ms'],
    [duration(9.97), '10 ms'],
    [duration(999.7), '1.0 s'],
    [duration(59_960), '1:00 min'],
    [duration(3_599_900), '1:00:00 h'],
    [duration(90_000_000), '1 d 01:00:00'],
    [rate(0), '0.0/s'],
    [rate(412.3), '412/s'],
    [rate(3.44), '3.4/s'],
    [rate(0.2), '12/min'],
    [rate(0.001), '3.6/h'],
    [percent(4999, 5000), '99%'],
    [precisePercent(4999, 5000), '99.9%'],
    [precisePercent(3, 4), '75%'],
    [precisePercent(71, 79), '89.9%'],
    [precisePercent(1, 5000), '0.1%'],
    [precisePercent(0, 5000), '0%'],
    [precisePercent(5000, 5000), '100%'],
    [bytes(999), '999 B'],
    [bytes(999_600), '1.0 MB'],
    [bytes(12_345), '12 kB'],
    [
      usageText({ inputTokens: 1234, cachedTokens: 1000, outputTokens: 56, costUsd: 0.0123 }),
      '1,234 tokens in (1,000 cached), 56 out, $0.0123',
    ],
    [usageText({ outputTokens: 5 }), '5 tokens out'],
    [usageText({ costUsd: 0.00003 }), '$0.00003'],
    [usageText({ costUsd: 1e-9 }), 'less than $0.000001'],
    [usageText({ costUsd: 0 }), '$0.00'],
    [usageText({}), ''],
  ])('%s', (text, expected) => expect(text).toBe(expected))
})

describe('text for a terminal', () => {
  it('has no control characters left', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(escapeControls(text).replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cs}]/u)
      }),
    )
    expect(escapeControls('\x1b[31mred\x07\r\n\tx\u202e\ud800')).toBe('\\x1b[31mred\\x07\n    x\\u202e\\ud800')
  })

  it('is measured and wrapped without its colors, and long words can be kept in one piece', () => {
    const red = '\x1b[31m漢字\x1b[39m'
    expect(displayWidth(red)).toBe(4)
    expect(wrap(`${red} path`, 8, { longWords: 'keep' })).toEqual([red, 'path'])
    expect(wrap('see /a/long/path', 6, { longWords: 'keep' })).toEqual(['see', '/a/long/path'])
    expect(wrap('see /a/long/path', 6)).toEqual(['see', '/a/lon', 'g/path'])
  })

  it('is measured in columns', () => {
    for (const [text, width] of [
      ['abc', 3],
      ['äöü', 3],
      ['e\u0301', 1],
      ['日本語', 6],
      ['한글', 4],
      ['👍🏽', 2],
      ['👨‍👩‍👧', 2],
      ['🇩🇪', 2],
      ['❤️', 2],
      ['…─', 2],
    ] as const)
      expect(displayWidth(text), text).toBe(width)
  })

  it('is cut to any width, and says so', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: 30 }), (raw, width) => {
        const text = escapeControls(raw).replaceAll('\n', ' ')
        expect(displayWidth(cut(text, width))).toBeLessThanOrEqual(width)
        if (displayWidth(text) <= width) expect(cut(text, width)).toBe(text)
        else expect(cut(text, width)).toMatch(/…$/)
      }),
    )
  })

  it('is wrapped without losing anything but spaces, and no row is too wide', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 2, max: 30 }), (raw, width) => {
        const text = escapeControls(raw)
        const rows = wrap(text, width)
        for (const row of rows) expect(displayWidth(row), JSON.stringify(row)).toBeLessThanOrEqual(width)
        expect(rows.join('').replace(/\s/g, '')).toBe(text.replace(/\s/g, ''))
      }),
    )
    expect(wrap('the quick brown fox', 10)).toEqual(['the quick', 'brown fox'])
    expect(wrap('  indented code stays so', 14)).toEqual(['  indented', 'code stays so'])
    expect(wrap('日本語の文章です', 6)).toEqual(['日本語', 'の文章', 'です'])
  })

  it('is one word of a shell where it is to be copied', () => {
    expect([shellWord('task-1'), shellWord('#3'), shellWord("it's")]).toEqual(['task-1', "'#3'", `'it'\\''s'`])
  })
})

describe('a line of JSON', () => {
  it('holds any value', () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
    })
    fc.assert(
      fc.property(anything, (value) => {
        const line = jsonLine({ value })
        expect(line).not.toContain('\n')
        JSON.parse(line)
      }),
      { numRuns: 1000 },
    )
  })

  it('is what JSON would be where JSON can', () => {
    // JSON has no minus zero.
    const json = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('-0'))
    fc.assert(
      fc.property(json, (value) => {
        expect(JSON.parse(jsonLine(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  it('shows in a readable way what JSON has no form for', () => {
    const cycle: Record<string, unknown> = { n: 1 }
    cycle.self = cycle
    const value = {
      big: 12n,
      map: new Map([['a', new Set([1])]]),
      pairs: new Map([[1, 2]]),
      bytes: new Uint8Array([104, 105]),
      floats: new Float32Array([0.5, Number.NaN]),
      date: new Date(0),
      error: new RangeError('no'),
      nothing: undefined,
      list: [undefined, Number.POSITIVE_INFINITY],
      cycle,
    }
    expect(JSON.parse(jsonLine(value))).toEqual({
      big: '12',
      map: { a: [1] },
      pairs: [[1, 2]],
      bytes: 'data:application/octet-stream;base64,aGk=',
      floats: [0.5, 'NaN'],
      date: '1970-01-01T00:00:00.000Z',
      error: { name: 'RangeError', message: 'no', stack: expect.stringContaining('RangeError: no') },
      list: [null, 'Infinity'],
      cycle: { n: 1, self: '[circular]' },
    })
    expect(jsonLine(undefined)).toBe('null')
  })

  it('does not choke on what is deep, or a graph with too many paths', () => {
    let deep: unknown = 0
    for (let i = 0; i < 100_000; i++) deep = [deep]
    expect(jsonLine(deep)).toContain('[too deep]')
    let node: object = { end: true }
    for (let i = 0; i < 40; i++) node = { left: node, right: node }
    expect(jsonLine(node)).toContain('[too large]')
    expect(inline(node)).toContain('…')
    expect(jsonPreview(node, 100)).toMatchObject({ isCut: true })
  })

  it('ends, however large the value is, and says what it left out', () => {
    const sparse: unknown[] = []
    sparse[4e9] = 1
    expect(jsonLine({ sparse })).toMatch(/^\{"sparse":\[null,.*"\[\d+ more\]"\]\}$/)
    expect(inline({ sparse })).toBe('{ sparse: [ … 4000000001 more items ] }')
    expect(inline(Object.assign(new Array(4), { 1: 1 }))).toBe('[ <1 empty item>, 1, <2 empty items> ]')
    const text = 'x'.repeat(70_000_000)
    expect(jsonLine({ text }).slice(-40)).toContain('more characters]')
    expect(jsonLine(new Uint8Array(60_000_000)).slice(-40)).toContain('more bytes]')
    const huge = 10n ** 1_000_000n
    expect(JSON.parse(jsonLine(huge))).toBe(`0x${huge.toString(16)}`)
    expect(inline([huge, -huge])).toMatch(/^\[ 0x\w+…, … \]$/)
    for (const value of [
      sparse,
      text,
      huge,
      new Map([[sparse, text]]),
      new Set([text]),
      { [text]: 1 },
      new Error(text),
    ]) {
      expect(jsonPreview(value, 100)).toMatchObject({ isCut: true })
      expect(jsonPreview(value, 100).text.length).toBeLessThan(400)
    }
  })
})
