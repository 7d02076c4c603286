import { readFileSync } from 'node:fs'
import { expect } from 'vitest'

/** What tasks of the agent `noting` have written: the lines of a file that begin with a word. */
export function linesOf(file: string, word: 'start' | 'end'): string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith(word))
  } catch {
    return []
  }
}

/** So many tasks have been started. */
export const untilStarted = (file: string, count: number): Promise<void> =>
  expect.poll(() => linesOf(file, 'start').length, { timeout: 120_000 }).toBeGreaterThanOrEqual(count)

/** Each is answered with its own id, and nobody was charged a second attempt. */
export function expectAllOnce(
  responses: ReadonlyMap<string, { answer?: unknown; attempts: number }>,
  count: number,
): void {
  expect(responses.size).toBe(count)
  for (const [id, { answer, attempts }] of responses) expect([answer, attempts]).toEqual([id, 1])
}
