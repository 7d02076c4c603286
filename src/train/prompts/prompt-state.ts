import * as z from 'zod/mini'
import { ManyworldsError } from '../../errors.ts'

const rewards = z.record(z.string(), z.nullable(z.number()))
const candidate = z.strictObject({
  version: z.int(),
  texts: z.record(z.string(), z.string()),
  /** The version it was made from; null for the first. */
  parent: z.nullable(z.int()),
  /** How many of its texts were rewritten so far, in turn. */
  next: z.int(),
})
const validated = z.strictObject({ ...candidate.shape, scores: rewards })

const shape = z.strictObject({
  format: z.literal(1),
  /** From 1. */
  iteration: z.int(),
  /** The newest version. */
  current: candidate,
  /** Validated candidates, in the order of their versions. */
  pool: z.array(validated),
  /** The candidate to validate next. */
  pending: z.nullable(candidate),
  /** A child to be tried on the minibatch of its parent. */
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
    /** The highest cost of an episode, as a mean over a run, and of a reflection. */
    episodeUsd: z.number(),
    askUsd: z.number(),
  }),
  counts: z.strictObject({
    proposed: z.int(),
    accepted: z.int(),
    unusable: z.int(),
    skipped: z.int(),
  }),
  /** Consecutive failed calls of the reflecting model. */
  failedInARow: z.int(),
  /** Whether the notice about missing feedback was shown. */
  saidBlind: z.boolean(),
})

/** Everything that the next step of prompt evolution depends on. Plain data. */
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
    throw new ManyworldsError(
      'LEARNER_INVALID',
      `these bytes are not the state of a prompt learner, or they are damaged`,
      { cause },
    )
  }
}
