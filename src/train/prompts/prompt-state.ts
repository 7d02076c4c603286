import * as z from 'zod/mini'
import { ManyworldsError } from '../../errors.ts'

const rewards = z.record(z.string(), z.nullable(z.number()))
const candidate = z.strictObject({
  version: z.int(),
  texts: z.record(z.string(), z.string()),
  /** The version that it was made of; null: the first. */
  parent: z.nullable(z.int()),
  /** How many of its texts were rewritten so far: round and round. */
  next: z.int(),
})
const validated = z.strictObject({ ...candidate.shape, scores: rewards })

const shape = z.strictObject({
  format: z.literal(1),
  /** From 1. */
  iteration: z.int(),
  /** The last version that was made. */
  current: candidate,
  /** Those that were validated, in the order of their versions. */
  pool: z.array(validated),
  /** It is to be validated. */
  pending: z.nullable(candidate),
  /** A child that is to be tried on the minibatch of its parent. */
  trial: z.nullable(
    z.strictObject({
      child: candidate,
      /** The update that collected the episodes of the parent. */
      update: z.int(),
      tasks: z.array(z.string()),
      rewards,
    }),
  ),
  spent: z.strictObject({
    evaluations: z.int(),
    usd: z.number(),
    /** The most that an episode has cost, as a mean over a run, and a reflection. */
    episodeUsd: z.number(),
    askUsd: z.number(),
  }),
  counts: z.strictObject({
    proposed: z.int(),
    accepted: z.int(),
    unusable: z.int(),
    skipped: z.int(),
  }),
  /** Calls of the model that reflects which failed one after the other. */
  failedInARow: z.int(),
  /** It was said that there is no feedback. */
  saidBlind: z.boolean(),
})

/** All that the next step of prompt evolution depends on. Plain data. */
export type PromptState = Readonly<z.infer<typeof shape>>
export type Candidate = Readonly<z.infer<typeof candidate>>
export type Validated = Readonly<z.infer<typeof validated>>

export function firstState(texts: Readonly<Record<string, string>>): PromptState {
  const first: Candidate = { version: 0, texts: { ...texts }, parent: null, next: 0 }
  return {
    ...{ format: 1, iteration: 1, current: first, pool: [], pending: first, trial: null },
    spent: { evaluations: 0, usd: 0, episodeUsd: 0, askUsd: 0 },
    counts: { proposed: 0, accepted: 0, unusable: 0, skipped: 0 },
    ...{ failedInARow: 0, saidBlind: false },
  }
}

export const packState = (state: PromptState): Uint8Array => new TextEncoder().encode(JSON.stringify(state))

export function unpackState(bytes: Uint8Array): PromptState {
  try {
    return shape.parse(JSON.parse(new TextDecoder().decode(bytes)))
  } catch (cause) {
    throw new ManyworldsError('LEARNER_INVALID', `this is not the state of a prompt learner`, { cause })
  }
}
