import {
  anything,
  byKind,
  type Check,
  flag,
  float64,
  int32,
  list,
  maybe,
  number,
  object,
  oneOf,
  orNull,
  record,
  text,
  textOrNumber,
  whole,
} from './shape-checks.ts'

/** The shapes of a trajectory from outside, checked before any other code uses it. */
const usage = object({
  inputTokens: maybe(number),
  outputTokens: maybe(number),
  cachedTokens: maybe(number),
  costUsd: maybe(number),
})

const error = object({ error: object({ code: text, name: text, message: text }) })
const ending = byKind({
  terminated: anything,
  unknown: anything,
  truncated: object({ by: oneOf('maxSteps', 'budget', 'context', 'timeout', 'environment') }),
  failed: error,
  cancelled: error,
})

const parent = object({
  branch: whole,
  step: orNull(whole),
  why: oneOf('parallel', 'serial', 'subtask', 'compaction', 'drift'),
})
const end = object({ ending, reward: orNull(number), success: orNull(flag) })
const branch = object({ id: whole, agent: text, parent: orNull(parent), task: maybe(text), end: maybe(end) })

const messageFields = {
  role: oneOf('system', 'user', 'assistant', 'tool'),
  reasoning: maybe(text),
  calls: maybe(list(object({ id: text, name: text, raw: text }))),
  callId: maybe(text),
}
const message = object(messageFields)
const policy = orNull(object({ name: text, version: number }))
const tokens = object({
  ...{ tokenizer: text, from: orNull(whole), tail: int32, completion: int32, logProbs: orNull(float64) },
  ...{ of: oneOf('raw', 'processed'), constrained: flag },
})

const stepFields = {
  ...{
    index: whole,
    atMs: number,
    agent: maybe(text),
    branch: maybe(whole),
    reward: maybe(number),
    usage: maybe(usage),
  },
  opens: maybe(list(object({ id: whole, agent: text, parent }))),
}
const step = byKind({
  note: object({ ...stepFields, text: maybe(text), ends: maybe(end) }),
  action: object({
    ...{ ...stepFields, candidates: maybe(list(anything)), choice: maybe(whole), logProb: orNull(number) },
    ...{
      value: maybe(number),
      mode: oneOf('sample', 'greedy'),
      policy,
      reward: number,
      rewards: maybe(record(number)),
    },
  }),
  tool: object({
    ...{ ...stepFields, call: orNull(object({ step: whole, position: whole, id: text })), name: text },
    ...{ arguments: object({ raw: text }), ms: number },
  }),
  model: object({
    ...{ ...stepFields, role: oneOf('agent', 'judge', 'user'), policy, server: object({ model: text }) },
    request: object({ from: orNull(whole), keep: whole, added: list(message), tools: text, wire: text }),
    reply: object({ ...messageFields, wire: text }),
    ...{ finish: text, cached: flag, tokens: orNull(tokens), redacted: maybe(flag), ms: number, retries: whole },
    sampling: object({ temperature: orNull(number), topP: orNull(number), topK: orNull(number), minP: orNull(number) }),
  }),
})

const grade = object({
  ...{ reward: orNull(number), success: orNull(flag), feedback: maybe(text) },
  parts: maybe(record(object({ value: number, weight: number }))),
  ...{ grader: object({ name: text, sha256: maybe(text) }), usage: maybe(usage) },
  error: maybe(object({ code: text, message: text })),
})

const trajectory: Check = object({
  ...{ id: text, run: orNull(text), task: text, agent: text, split: orNull(oneOf('train', 'validation', 'test')) },
  ...{ group: orNull(object({ id: text, size: orNull(whole) })), visit: whole, rollout: whole, attempt: whole },
  ...{ seed: orNull(textOrNumber), branches: list(branch), steps: list(step), ending },
  episode: orNull(object({ reward: orNull(number), success: orNull(flag) })),
  ...{ grade: orNull(grade), digest: orNull(text), usage, ms: number, meta: record(anything) },
})

/** Whether the fields of a step have the right types: a store may contain steps that this package did not record. */
export function isWellFormed(value: unknown): boolean {
  try {
    // Stop at the first problem.
    step(value, 'step', (words) => {
      throw new TypeError(words)
    })
    return true
  } catch {
    return false
  }
}

/** Returns the problems with the shape of a trajectory, each with its path; an empty list if all fields have the right types. */
export function wrongShapes(value: unknown): string[] {
  const wrong: string[] = []
  trajectory(value, '', (words) => wrong.push(words))
  return wrong
}
