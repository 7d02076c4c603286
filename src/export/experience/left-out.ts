import { count } from '../../text/quantities.ts'
import type { UntrainableCode } from '../../trajectory/trainable.ts'

/** Why a trajectory is not exported, as a predicate in singular and plural. */
export interface Reason {
  readonly one: string
  readonly many: string
}

const has = (what: string): Reason => ({ one: `has ${what}`, many: `have ${what}` })
const was = (what: string): Reason => ({ one: `was ${what}`, many: `were ${what}` })
const both = (what: string): Reason => ({ one: what, many: what })

export const REASONS = {
  otherSplit: has('another split'),
  notSolved: was('not solved (--only-success)'),
  lowReward: has('a lower reward, or none (--min-reward)'),
  notBest: {
    one: 'was not the best of its group (--best)',
    many: 'were not the best of their groups (--best)',
  },
  notPaired: {
    one: 'was neither the best nor the worst of its group',
    many: 'were neither the best nor the worst of their groups',
  },
  sameReward: {
    one: 'is in a group without two rewards that differ enough',
    many: 'are in groups without two rewards that differ enough',
  },
  otherLeftOut: {
    one: 'would be paired with one that is left out',
    many: 'would be paired with ones that are left out',
  },
  notDifferent: both('equal the trajectory they would be paired with'),
  notAlike: both('start differently from the trajectory they would be paired with'),
  manyConversations: has('several conversations'),
  noSteps: has('no steps'),
  removedSteps: has('steps that were removed to save space'),
  unfinished: both('failed or did not finish'),
  noModel: has('no model calls'),
  noRow: has('tokens that cannot be joined'),
  unreadableTools: has('tools that are not JSON'),
} as const satisfies Readonly<Record<string, Reason>>

/** The same for a call of the agent's model that may not be trained on. */
export const UNTRAINABLE: Readonly<Record<UntrainableCode, Reason>> = {
  REDACTED: both('contained secrets, which were removed together with the tokens'),
  NO_TOKENS: has('no token ids'),
  NO_PROMPT: has('no token ids of a prompt'),
  NO_LOG_PROBS: has('no log-probabilities'),
  WRONG_LOG_PROBS: has('another number of log-probabilities than tokens'),
  NO_TEMPERATURE: was('sampled at an unknown temperature'),
  GREEDY: was('sampled at temperature 0'),
  CONSTRAINED: was('decoded under a grammar or schema'),
  TRUNCATED: was('sampled with top_p, top_k or min_p'),
  PENALTIES: was('sampled with penalties or a logit bias'),
  RAW_LOG_PROBS: has("log-probabilities without temperature (set `tokens: 'processed'` if the server returns such)"),
}

/** Counts the trajectories that an export leaves out, so that the user is told. */
export class LeftOut {
  readonly #counts = new Map<Reason, number>()

  add(reason: Reason): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1)
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, some) => sum + some, 0)
  }

  /** `12 trajectories left out: 10 have no token ids; 2 failed or did not finish`; undefined if there are none. */
  get text(): string | undefined {
    if (this.total === 0) return undefined
    const sorted = [...this.#counts].sort(([, a], [, b]) => b - a)
    const reasons = sorted.map(([{ one, many }, some]) => `${count(some)} ${some === 1 ? one : many}`)
    return `${count(this.total)} ${this.total === 1 ? 'trajectory' : 'trajectories'} left out: ${reasons.join('; ')}`
  }
}
