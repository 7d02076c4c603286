import { afterEach, expect, test, vi } from 'vitest'
import { LineLimit } from '../../src/engines/line-limit.ts'

afterEach(() => void vi.useRealTimers())

test('a node that prints without end has a bounded part of it printed, and the rest counted', () => {
  vi.useFakeTimers()
  const leftOut: number[] = []
  const limit = new LineLimit((lines) => leftOut.push(lines))
  let printed = 0
  for (let n = 0; n < 5000; n++) if (limit.allows('a line\n')) printed++
  expect(printed).toBe(1000)
  vi.advanceTimersByTime(10_000)
  expect(leftOut).toEqual([4000])
  expect(limit.allows('x'.repeat(1024 * 1024))).toBe(false)
  vi.advanceTimersByTime(10_000)
  expect(leftOut).toEqual([4000, 1])
  expect(limit.allows('a line\nand another\n')).toBe(true)
  vi.advanceTimersByTime(60_000)
  expect(leftOut).toEqual([4000, 1])
})
