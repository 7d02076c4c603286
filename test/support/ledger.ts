import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { type RunConfig, Runners } from '../../dist/index.js'
import { noting } from '../agents/nodes.ts'

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

type Answers = ReadonlyMap<string, { answer?: unknown; attempts: number }>

interface SteadyRun extends AsyncDisposable {
  stop(): Promise<Answers>
}

/** A run that goes on for as long as something else takes: tasks of so many milliseconds each, until it is stopped. */
export function runUntilStopped(ms: number, file: string, config: RunConfig): SteadyRun {
  let stopped = false
  let given = 0
  function* tasks() {
    for (; !stopped && given < 20_000; given++) yield noting.task({ ms, file, id: `t${given}` }, { id: `t${given}` })
  }
  const collect = async () => {
    const answers = new Map<string, { answer?: unknown; attempts: number }>()
    for await (const response of Runners.streamTask(tasks(), config)) {
      if (answers.has(response.id)) throw new Error(`${response.id} was answered twice`)
      answers.set(response.id, response)
    }
    if (answers.size < given) throw new Error(`${given - answers.size} tasks were not answered`)
    return answers
  }
  const collected = collect()
  // Whoever stops it is told.
  collected.catch(() => {})
  const stop = () => {
    stopped = true
    return collected
  }
  return {
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop()
    },
  }
}

/** Each is answered with its own id, and nobody was charged a second attempt. */
export function expectAllOnce(responses: Answers, count: number): void {
  expect(responses.size).toBe(count)
  for (const [id, { answer, attempts }] of responses) expect([answer, attempts]).toEqual([id, 1])
}
