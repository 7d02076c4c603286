import { beforeAll, expect, test } from 'vitest'
import { printed, runScript } from '../support/run-script.ts'

/** A language model of the AI SDK that is an object in the driver, called by tasks in their workers. */

interface Outcome {
  readonly kind: string
  readonly tries?: number
  readonly answer?: string
  readonly code?: string
  readonly message?: string
  readonly aborted?: number
  readonly steps?: readonly Record<string, unknown>[]
}

let outcomes: ReadonlyMap<string, Outcome>
beforeAll(async () => {
  const ended = await runScript('object-model.ts')
  expect(ended.stderr).toBe('')
  outcomes = new Map((printed(ended) as Outcome[]).map((outcome) => [outcome.kind, outcome]))
  expect(ended.code).toBe(0)
})
const of = (kind: string) => outcomes.get(kind)!

test('it gets URLs as URL objects and bytes as bytes', () => {
  expect(JSON.parse(of('parts').answer!)).toEqual([
    'text',
    'URL https://example.com/a%20b.png?x=1',
    'bytes 137,80,78,71,0,255',
  ])
})

test('a call is a step, with the options that it was given', () => {
  expect(of('parts').steps).toMatchObject([
    {
      ...{ server: { model: 'own-1' }, finish: 'end_turn', usage: { inputTokens: 3, outputTokens: 2 }, retries: 0 },
      sampling: { temperature: 0.5, maxTokens: 7 },
      request: { model: 'own-1', callOptions: { temperature: 0.5, maxOutputTokens: 7 } },
    },
  ])
})

test('ctx.generate() calls it too', () => expect(of('generate')).toMatchObject({ answer: 'generate' }))

test('429 is tried again, and the call is one step', () => {
  expect(of('429')).toMatchObject({ tries: 3, answer: 'after 3 tries', steps: [{ retries: 2 }] })
})

test('what cannot get better is not tried again', () => {
  expect(of('400')).toMatchObject({ tries: 1, code: 'MODEL_CONTEXT_LENGTH' })
  expect(of('400').message).toContain("model 'own': the server answered HTTP 400: This model's maximum")
  expect(of('words')).toMatchObject({ tries: 1, code: 'MODEL_INVALID_REQUEST' })
  expect(of('words').message).toContain('just words')
})

test('an answer that a content filter cut is an error, and a step', () => {
  expect(of('filtered')).toMatchObject({ code: 'MODEL_CONTENT_FILTER', steps: [{ finish: 'refusal' }] })
})

test('a result that is none is an error that says so', () => {
  expect(of('nothing')).toMatchObject({ tries: 1, code: 'MODEL_INVALID_REQUEST' })
  expect(of('nothing').message).toContain('the result has no `content` list')
})

test('a result without usage and reason, and one of an earlier specification, are read as far as they go', () => {
  expect(of('half')).toMatchObject({ answer: 'half', steps: [{ finish: 'other' }] })
  expect(of('old')).toMatchObject({ answer: 'old', steps: [{ usage: { inputTokens: 5, outputTokens: 6 } }] })
})

test('functions in a result are left out, and its headers', () => {
  expect(of('functions')).toMatchObject({
    answer: 'with functions',
    steps: [{ server: { model: 'own-1-b', id: 'r1' }, wire: '{"raw":true}' }],
  })
})

test('one that hangs is aborted with its task, and not waited for', () => {
  expect(of('hangs')).toMatchObject({ code: 'TASK_TIMEOUT', aborted: 1 })
})
