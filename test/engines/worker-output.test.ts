import { afterEach, expect, test, vi } from 'vitest'
import { RayLink } from '../../src/engines/ray/ray-link.ts'
import { lineSplitter } from '../../src/engines/worker-output.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

test('lines are passed on whole, and long ones in parts', () => {
  const shown: string[] = []
  const lines = lineSplitter((text) => shown.push(text))
  for (const text of ['a', 'b\nc', '', '\n\nd']) lines.add(text)
  expect(shown).toEqual(['ab\n', 'c\n\n'])
  lines.add('x'.repeat(70_000))
  expect(shown[2]).toBe(`d${'x'.repeat(70_000)}\n`)
  lines.add('e')
  lines.end()
  lines.end()
  expect(shown.slice(3)).toEqual(['e\n'])
})

test('a Ray worker that prints without end has a bounded part of it shown, and the rest counted', () => {
  vi.useFakeTimers()
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  const notices: string[] = []
  const bridge = { data: () => {}, control: () => {} }
  const link = new RayLink(bridge, 1, 'ray-0', 1, { host: 'here' }, (line) => notices.push(line))
  link.printed('one\ntwo\nthr')
  link.printed('ee\n')
  expect(stderr.mock.calls.flat()).toEqual(['[ray-0] one\n[ray-0] two\n', '[ray-0] three\n'])
  for (let n = 0; n < 64; n++) link.printed('x'.repeat(64 * 1024))
  const shown = stderr.mock.calls.flat().join('').length
  expect(shown).toBeGreaterThan(64 * 1024)
  expect(shown).toBeLessThan(300 * 1024)
  vi.advanceTimersByTime(10_000)
  expect(notices).toEqual([expect.stringMatching(/^worker ray-0 printed too much: \d+ lines were left out$/)])
})
