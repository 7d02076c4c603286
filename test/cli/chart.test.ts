import { describe, expect, it } from 'vitest'
import { type ChartLayout, chart, drawsBlocks, sparkline } from '../../src/text/chart.ts'
import { displayWidth } from '../../src/text/width.ts'

const share: Omit<ChartLayout, 'width' | 'blocks'> = {
  ...{ low: 0, high: 1, label: (value) => `${100 * value} %` },
  ends: ['0', 'last'],
}
const rising = (count: number) => Array.from({ length: count }, (_, i) => i / (count - 1))

describe('a chart', () => {
  it.each([60, 80, 200])('fits into %i columns, whatever the number of values', (width) => {
    for (const count of [1, 2, 7, 50, 60, 199, 200, 1000, 12_345])
      for (const blocks of [true, false]) {
        const { lines, perColumn } = chart(rising(count).fill(1, 0, 1), { ...share, width, blocks })
        for (const line of lines) expect(displayWidth(line), line).toBeLessThanOrEqual(width)
        expect(perColumn).toBe(Math.ceil(count / (width - 7)))
        expect(lines.join('')).toMatch(blocks ? /^[^#]+$/ : /^[ -~]+$/)
      }
  })

  it('draws what the values are: full height is the top, half of it the middle, and nothing is not zero', () => {
    const { lines } = chart([1, 0.5, 0, null, 1 / 12], { ...share, width: 12, blocks: true })
    expect(lines).toEqual([
      ' 100 %│██',
      '      │██',
      '      │██',
      '      │████',
      '      │████',
      '   0 %│████▁▁  ▄▄',
      '      └──────────',
      '       0     last',
    ])
    expect(chart([1, 0.5, 0, null, 1 / 12], { ...share, width: 12, blocks: false }).lines).toEqual([
      ' 100 %|##',
      '      |##',
      '      |##',
      '      |####',
      '      |####',
      '   0 %|####..  ::',
      '      +----------',
      '       0     last',
    ])
  })

  it('shows the mean of several values in a column if there are more values than columns', () => {
    const { lines, perColumn } = chart(
      Array.from({ length: 20 }, (_, i) => i % 2),
      { ...share, width: 17, blocks: true },
    )
    expect(perColumn).toBe(2)
    expect(lines[0]).toBe(' 100 %│')
    expect(lines[3]).toBe(`      │${'█'.repeat(10)}`)
  })

  it('is drawn with block characters only where the terminal has them', () => {
    expect(drawsBlocks({ LANG: 'en_US.UTF-8' })).toBe(true)
    expect(drawsBlocks({ LANG: 'en_US.UTF-8', LC_ALL: 'C' })).toBe(false)
    expect(drawsBlocks({ LC_CTYPE: 'C.utf8', LANG: 'C' })).toBe(true)
    expect(drawsBlocks({ LANG: 'de_DE.ISO-8859-1' })).toBe(false)
    expect(drawsBlocks({ LANG: 'en_US.UTF-8', TERM: 'linux' })).toBe(false)
    expect(drawsBlocks({})).toBe(true)
  })
})

it('a line of marks goes from the lowest value to the highest', () => {
  expect(sparkline([-1, 0, null, 1], 10, true)).toBe('▁▄ █')
  expect(sparkline([3, 3], 10, true)).toBe('▄▄')
  expect(sparkline([0, 10], 10, false)).toBe('.#')
  expect(sparkline([null, null], 10, true)).toBe('  ')
})
