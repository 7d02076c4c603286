/** How an episode ended; what failed or was cancelled is in the status of its response. */
export type Ending =
  | { readonly kind: 'terminated' }
  /** Cut short: by a limit of the agent, its clock, or the environment's own limit. */
  | { readonly kind: 'truncated'; readonly by: Truncation }
  /** The environment said that it is done, and not whether it came to an end or was cut short. */
  | { readonly kind: 'unknown' }

export type Truncation = 'maxSteps' | 'budget' | 'context' | 'timeout' | 'environment'

/** What an agent in an environment came to, besides its answer. */
export interface Episode {
  readonly ending: Ending
  /** What the environment showed after the last action; a learner needs it where an episode was cut short. */
  readonly finalObservation?: unknown
  /** The sum of the rewards of its steps. */
  readonly reward: number | null
  /** Whether the environment calls it solved; null: it does not say. */
  readonly success: boolean | null
}

/** Under this a context takes the end of an episode. */
export const EPISODE: unique symbol = Symbol.for('manyworlds.episode')

/** What takes the end of an episode: the context of a task. */
export interface EpisodeSink {
  [EPISODE](episode: Episode): void
}

/** Says how an episode ended, on behalf of an agent that was made by this package; once, before its answer. */
export const endEpisode = (ctx: object, episode: Episode): void => (ctx as EpisodeSink)[EPISODE](episode)
