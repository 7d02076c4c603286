import { describe, expect, test } from 'vitest'
import { TaskError } from '../../src/errors.ts'
import { decideRetry } from '../../src/executor/retry-decision.ts'
import type { TaskEntry } from '../../src/executor/task-entry.ts'
import type { ErrorItem } from '../../src/protocol/messages.ts'

interface Case {
  readonly what: string
  readonly attempts: number
  readonly maxAttempts?: number
  readonly neverRerun?: boolean
  readonly status?: 'failed' | 'crashed' | 'timeout'
  readonly error?: Partial<ErrorItem>
  readonly retryIf?: (error: unknown) => unknown
  readonly expected: unknown
}

function decide({ attempts, maxAttempts, neverRerun = false, status = 'failed', error, retryIf }: Case) {
  const entry = { id: 't', attempts, options: { maxAttempts, neverRerun }, run: { options: { retryIf } } }
  const item = { code: 'TASK_THREW', name: 'Error', message: 'no', stack: undefined, ...error } as ErrorItem
  const taskError = () => new TaskError('TASK_THREW', 'no')
  return decideRetry(entry as unknown as TaskEntry, status, item, taskError)
}

const cases: Case[] = [
  { what: 'nobody asked: once', attempts: 1, expected: undefined },
  { what: 'maxAttempts 3, after the second', attempts: 2, maxAttempts: 3, expected: {} },
  { what: 'maxAttempts 3, after the third', attempts: 3, maxAttempts: 3, expected: undefined },
  { what: 'the error says so, up to three', attempts: 2, error: { retryable: true }, expected: { afterMs: undefined } },
  { what: 'the error says so, but not a fourth time', attempts: 3, error: { retryable: true }, expected: undefined },
  { what: 'the error says when', attempts: 1, error: { retryable: true, retryAfterMs: 70 }, expected: { afterMs: 70 } },
  { what: 'the error says no', attempts: 1, maxAttempts: 9, error: { retryable: false }, expected: undefined },
  {
    what: 'a wrong key stays wrong',
    attempts: 1,
    maxAttempts: 9,
    error: { code: 'MODEL_AUTHENTICATION' },
    expected: undefined,
  },
  {
    what: 'crashed, and must not run twice',
    attempts: 1,
    maxAttempts: 9,
    status: 'crashed',
    neverRerun: true,
    expected: undefined,
  },
  {
    what: 'failed, and would not run twice after a crash',
    attempts: 1,
    maxAttempts: 9,
    neverRerun: true,
    expected: {},
  },
  { what: 'retryIf says yes', attempts: 2, retryIf: () => true, expected: {} },
  { what: 'retryIf says yes, too late', attempts: 3, retryIf: () => true, expected: undefined },
  { what: 'retryIf says no', attempts: 1, maxAttempts: 9, retryIf: () => false, expected: undefined },
]

describe('whether a failed attempt is followed by another', () => {
  test.each(cases)('$what', (one) => expect(decide(one)).toEqual(one.expected))

  test.each([
    {
      what: 'nothing',
      retryIf: () => undefined,
      says: /must return true or false, for task 't', attempt 1 it returned undefined/,
    },
    { what: 'a promise', retryIf: async () => true, says: /it returned a promise; it cannot be async/ },
    { what: 'a promise that is rejected', retryIf: () => Promise.reject(new Error('late')), says: /a promise/ },
  ])('a retryIf that returns $what stops the run, with the reason', ({ retryIf, says }) => {
    expect(decide({ what: '', attempts: 1, retryIf, expected: {} })).toMatchObject({
      problem: { code: 'RETRY_IF_FAILED', message: expect.stringMatching(says) },
    })
  })

  test('a retryIf that throws stops the run, and its error is the cause', () => {
    const cause = new Error('my mistake')
    const retryIf = () => {
      throw cause
    }
    expect(decide({ what: '', attempts: 1, retryIf, expected: {} })?.problem).toMatchObject({
      code: 'RETRY_IF_FAILED',
      cause,
    })
  })
})
