import type { ModelStep, Step } from '../../src/trajectory/step.ts'
import { type TrajectoryContext, trajectoryOf } from '../../src/trajectory/trajectory-of.ts'

export const response = {
  id: 'q7@2',
  agentName: 'clerk',
  status: 'success',
  answer: 12 as unknown,
  usage: { outputTokens: 3 },
  timing: { runMs: 1500 },
  attempts: 1,
  groupId: 'q7',
  rollout: 2,
} as const

/** A trajectory of these steps. */
export const made = (steps: readonly Step[], more: object = {}, around: TrajectoryContext = {}) =>
  trajectoryOf({ ...response, ...more }, steps, around)

/** A step of a model, with tokens. */
export const model = (
  more: Partial<ModelStep> & { ids?: number[]; tail?: number[]; from?: number | null },
): ModelStep => {
  const { ids = [1, 2], tail = [9], from = null, ...rest } = more
  return {
    ...{ kind: 'model', role: 'agent', policy: { name: 'p', version: 1 }, server: { model: 'm' } },
    request: { from: null, keep: 0, added: [{ role: 'user', content: 'hi' }], tools: '', wire: '' },
    reply: { role: 'assistant', content: 'ho', wire: '' },
    ...{ finish: 'stop', cached: false, ms: 1, retries: 0 },
    tokens: {
      ...{ tokenizer: 't', from, tail: Int32Array.from(tail), completion: Int32Array.from(ids) },
      ...{ logProbs: Float64Array.from(ids, () => -0.5), of: 'processed', constrained: false },
    },
    sampling: { temperature: 0.7, topP: 1, topK: 0, minP: 0, other: null },
    ...rest,
  }
}
export const placed = (...contents: readonly object[]) =>
  contents.map((content, index) => ({ index, atMs: index, ...content }) as Step)
