/** How an episode ended. Failure and cancellation are in the status of the response. */
export type Ending =
  | { readonly kind: 'terminated' }
  /** Truncated by a limit or the timeout of the agent, or by a limit of the environment. */
  | { readonly kind: 'truncated'; readonly by: Truncation }
  /** The environment was done, but did not tell whether the episode terminated or was truncated. */
  | { readonly kind: 'unknown' }

/** What cut an episode short. */
export type Truncation = 'maxSteps' | 'budget' | 'context' | 'timeout' | 'environment'

/** The result of an agent in an environment, besides its answer. */
export interface Episode {
  readonly ending: Ending
  /** The observation after the last action. A learner needs it for truncated episodes. */
  readonly finalObservation?: unknown
  /** The sum of the rewards of the steps. */
  readonly reward: number | null
  /** Whether the environment reports the task as solved; null: unknown. */
  readonly success: boolean | null
}

/** The method of a context that receives the end of an episode. */
export const EPISODE: unique symbol = Symbol.for('manyworlds.episode')

/** Receives the end of an episode: the context of a task. */
export interface EpisodeSink {
  [EPISODE](episode: Episode): void
}

/** Reports how an episode ended, once, before the answer. For agents that this package defines. */
export const endEpisode = (ctx: object, episode: Episode): void => (ctx as EpisodeSink)[EPISODE](episode)
