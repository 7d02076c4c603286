import { describe, expect, test } from 'vitest'
import { type Judged, judgementOf, judgementOfTrajectory, refusedCalls } from '../../src/grade/judgement.ts'
import { made, model, placed } from '../trajectory/made.ts'

const grader = { name: 'close', sha256: 'abc' }
const graded = (reward: number | null, success: boolean | null = null, more: object = {}): Judged => ({
  status: 'success',
  grade: { reward, success, grader, ...more },
})
const noResult = (reason: string) => ({ reward: null, solved: null, basis: null, blame: 'infrastructure', reason })

describe('a rollout', () => {
  test.each<[string, Judged, object]>([
    ['is solved if the grader says so', graded(0.2, true), { solved: true, reward: 0.2, basis: 'verdict' }],
    ['is unsolved if the grader says so', graded(5, false), { solved: false, reward: 5, basis: 'verdict' }],
    ['is solved by a number of 1', graded(0.7 + 0.2 + 0.1), { solved: true, basis: 'grade', blame: null }],
    ['is unsolved by a lower number', graded(0.99), { solved: false, reward: 0.99, basis: 'grade' }],
    ['has no result without verdict and number', graded(null), noResult('NOT_GRADED')],
    ['has no result if its number overflowed', graded(Number.POSITIVE_INFINITY), noResult('NOT_GRADED')],
    [
      'has no result if its grader threw',
      graded(null, null, { error: { code: 'GRADER_THREW', message: '' } }),
      noResult('GRADER_THREW'),
    ],
    [
      'has no result while it waits for its grade, whatever its environment says',
      {
        ...graded(null, null, { error: { code: 'GRADING_PENDING', message: '' } }),
        episode: { reward: 1, success: true },
      },
      noResult('GRADING_PENDING'),
    ],
    [
      'is solved if its environment says so',
      { status: 'success', episode: { reward: 0, success: true } },
      { solved: true, reward: 0, basis: 'verdict' },
    ],
    [
      'is solved by the reward of its environment, which is marked: its scale is its own',
      { status: 'success', episode: { reward: 200, success: null } },
      { solved: true, reward: 200, basis: 'return' },
    ],
    [
      'is marked in the same way once that is its grade',
      { status: 'success', grade: { reward: 200, success: null, grader: { name: 'an agent' } } },
      { solved: true, reward: 200, basis: 'return' },
    ],
    ['is solved if nothing grades it', { status: 'success' }, { solved: true, reward: null, basis: 'trust' }],
    [
      'is unsolved if the agent failed, and has no reward',
      { status: 'failed', code: 'TASK_THREW', episode: { reward: 3, success: null } },
      { solved: false, reward: null, basis: 'failure', blame: 'agent', reason: 'TASK_THREW' },
    ],
    [
      'counts by its grade although it failed',
      { ...graded(1, true), status: 'timeout', code: 'TASK_TIMEOUT' },
      { solved: true, blame: null },
    ],
    [
      'has no result if its model does not exist',
      { status: 'failed', code: 'MODEL_INVALID_REQUEST' },
      noResult('MODEL_INVALID_REQUEST'),
    ],
    [
      'is unsolved if its conversation grew too long',
      { status: 'failed', code: 'MODEL_CONTEXT_LENGTH' },
      { solved: false, blame: 'agent' },
    ],
    ['has no result if it was not run', { status: 'not-run' }, noResult('NOT_RUN')],
  ])('%s', (_, rollout, expected) => {
    expect(judgementOf(rollout)).toMatchObject(expected)
  })
})

describe('a trajectory', () => {
  const error = { code: 'MODEL_INVALID_REQUEST', name: 'TaskError', message: 'HTTP 404' }

  test('is judged as its response is', () => {
    const judged = (more: object) => judgementOfTrajectory({ ...made([]), ...more })
    expect(judged({ grade: { reward: 1, success: null, grader } })).toMatchObject({ solved: true })
    expect(judged({ ending: { kind: 'failed', error } })).toMatchObject({ solved: null })
    const ending = { kind: 'failed', error: { ...error, code: 'TASK_THREW' } }
    expect(judged({ ending, episode: { reward: 1, success: true } })).toMatchObject({ solved: false, reward: null })
  })

  test('says which calls of the agent may not be trained on, and why', () => {
    const call = model({ ids: [1] })
    const steps = placed(
      call,
      { ...call, sampling: { ...call.sampling, topP: 0.9 } },
      { ...call, role: 'judge', tokens: null },
      { ...call, tokens: null },
    )
    expect(refusedCalls({ steps })).toMatchObject([
      { step: 1, code: 'TRUNCATED' },
      { step: 3, code: 'NO_TOKENS' },
    ])
  })
})
