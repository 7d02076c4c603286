import * as z from 'zod/mini'
import { isAgent } from '../../agent.ts'
import { issuesText, shownValue } from '../../config-issues.ts'
import { nearest } from '../../did-you-mean.ts'
import { ManyworldsError } from '../../errors.ts'
import type { RunConfig } from '../../run-config.ts'
import { RUN_KEYS } from '../../run-config-schema.ts'
import { MAX_TIMER_MS } from '../../task-checks.ts'
import type { TrainingSink } from '../sinks/sink.ts'
import { sinkOf } from '../sinks/sink-of.ts'
import type { ObserveTraining } from './observer.ts'
import type { EvaluateOptions, PipelineOptions, TrainingAlgorithm } from './options.ts'
import { selfDirectedDefaults, selfDirectedLearner } from './self-directed-learner.ts'

/** Options of a training with their defaults, and the options of its runs. */
export interface Settings
  extends Required<
      Pick<PipelineOptions, 'agent' | 'tasks' | 'rollouts' | 'tasksPerUpdate' | 'tasksPerEpoch' | 'epochs' | 'seed'>
    >,
    Pick<PipelineOptions, 'split' | 'offTask' | 'learner' | 'learnerTimeoutMs' | 'patience' | 'control' | 'alarms'> {
  readonly algorithm: TrainingAlgorithm
  /** Undefined if versions are not evaluated. */
  readonly evaluate: Required<EvaluateOptions> | undefined
  /** The fraction of uniform draws; undefined without a curriculum. */
  readonly curriculum: { readonly floor: number } | undefined
  /** Undefined: collecting and training alternate. */
  readonly overlap: { readonly maxStaleness: number } | undefined
  readonly keepTrajectories: number
  readonly sinks: readonly TrainingSink[]
  readonly progress: boolean | ObserveTraining
  readonly run: RunConfig
}

const count = (max = 1_000_000) => z.number().check(z.int(), z.minimum(1), z.maximum(max))
const isObject = (value: unknown) => typeof value === 'object' && value !== null
const isFunction = (value: unknown) => typeof value === 'function'
const object = z.custom<object>(isObject, 'must be an object')

/** Each batch collected ahead is a separate run, and its data goes stale. */
const MAX_STALENESS = 64

const own = z.strictObject({
  agent: z.custom((value) => isAgent(value), 'must be an agent, such as stepAgent() returns'),
  tasks: z.custom(isObject, 'must be a list of tasks, or { train, validation, test }'),
  offTask: z.optional(z.custom<NonNullable<PipelineOptions['offTask']>>(isObject, 'must be a list of tasks')),
  split: z.optional(object),
  algorithm: z.optional(object),
  learner: z.optional(object),
  learnerTimeoutMs: z.optional(count(MAX_TIMER_MS)),
  rollouts: z._default(count(100_000), 8),
  tasksPerUpdate: z._default(count(), 16),
  tasksPerEpoch: z.optional(count(1_000_000_000)),
  epochs: z._default(count(), 10),
  seed: z._default(z.number().check(z.int()), 0),
  evaluate: z.optional(
    z.union(
      [
        z.literal(false),
        z.strictObject({
          every: z.optional(count()),
          rollouts: z.optional(count(100_000)),
          testRollouts: z.optional(count(100_000)),
          mode: z.optional(z.enum(['sample', 'greedy'])),
        }),
      ],
      "must be false, or an object with every, rollouts, testRollouts or mode ('sample' or 'greedy')",
    ),
  ),
  patience: z.optional(count()),
  curriculum: z.optional(
    z.union(
      [z.boolean(), z.strictObject({ floor: z.optional(z.number().check(z.positive(), z.maximum(1))) })],
      'must be true, false or { floor } with a number above 0 and up to 1',
    ),
  ),
  overlap: z.optional(
    z.union(
      [
        z.boolean(),
        z.strictObject({ maxStaleness: z.optional(z.number().check(z.int(), z.minimum(0), z.maximum(MAX_STALENESS))) }),
      ],
      `must be true, false or { maxStaleness } with a whole number from 0 to ${MAX_STALENESS}`,
    ),
  ),
  control: z.optional(z.enum(['off', 'shuffled'])),
  keepTrajectories: z._default(count(), 1),
  alarms: z.optional(object),
  log: z.optional(z.unknown()),
  progress: z._default(
    z.union([z.boolean(), z.custom<ObserveTraining>(isFunction)], 'must be true, false or an observer function'),
    false,
  ),
})

const OWN_KEYS = Object.keys(own.shape)
const REFUSED: Readonly<Record<string, string>> = {
  sequenceDependent: 'episodes of a training do not depend on each other',
  limit: 'sample the tasks first, with `sample` of manyworlds/data',
  sampleSeed: 'the order of tasks depends on `seed`',
  retryFailed: 'a failed rollout is retried once automatically',
  deadlineMs: 'end the training with `epochs` or a `signal`',
  maxCostUsd: 'end the training with `epochs` or a `signal`',
  maxTokens: 'end the training with `epochs` or a `signal`',
}
/** The default fraction of uniform draws of a curriculum. */
const FLOOR = 0.2
const UPDATES_PER_EPOCH = 8

/** Throws one error that names every wrong key, before anything starts. Run options are checked by the runs. */
export function settingsOf(options: unknown): Settings {
  if (typeof options !== 'object' || options === null)
    throw invalid(`options must be an object such as { agent, tasks }; they are ${shownValue(options)}`)
  const mine: Record<string, unknown> = {}
  const run: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue
    refuse(key)
    if (OWN_KEYS.includes(key)) mine[key] = value
    else if (RUN_KEYS.includes(key)) run[key] = value
    else throw invalid(unknownKey(key))
  }
  const result = own.safeParse({ ...selfDirectedDefaults(mine), ...mine })
  if (!result.success) throw invalid(issuesText(result.error.issues, mine, () => OWN_KEYS))
  const {
    evaluate,
    curriculum,
    overlap,
    tasksPerUpdate,
    tasksPerEpoch,
    algorithm = {},
    log = [],
    ...rest
  } = result.data
  return {
    ...(rest as unknown as Settings),
    ...{ tasksPerUpdate, tasksPerEpoch: tasksPerEpoch ?? UPDATES_PER_EPOCH * tasksPerUpdate },
    // A learner that selects its own training data decides when it has finished.
    ...(selfDirectedLearner(rest as unknown as Settings) &&
      mine.epochs === undefined && { epochs: Number.POSITIVE_INFINITY }),
    algorithm: algorithm as TrainingAlgorithm,
    evaluate:
      evaluate === false ? undefined : { every: 1, rollouts: 1, testRollouts: 4, mode: 'sample', ...given(evaluate) },
    curriculum: curriculum ? { floor: FLOOR, ...(curriculum === true ? {} : given(curriculum)) } : undefined,
    sinks: (Array.isArray(log) ? log : [log]).map(sinkOf),
    overlap: overlap ? { maxStaleness: 1, ...(overlap === true ? {} : given(overlap)) } : undefined,
    run: run as RunConfig,
  }
}

/** Applies the options of the host program; `seed` and `rollouts` are those of the training. */
export function withHostOptions(settings: Settings, { seed, rollouts, ...run }: RunConfig): Settings {
  for (const [key, value] of Object.entries(run)) if (value !== undefined) refuse(key)
  return { ...settings, ...(seed !== undefined && { seed }), ...(rollouts !== undefined && { rollouts }), run }
}

function refuse(key: string): void {
  if (Object.hasOwn(REFUSED, key)) throw invalid(`\`${key}\` is not an option of trainings: ${REFUSED[key]}`)
}

/** Without undefined values, which would override defaults. */
const given = <T extends object>(options: T | undefined) =>
  Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as {
    [Key in keyof T]: Exclude<T[Key], undefined>
  }

function unknownKey(key: string): string {
  const meant = nearest(key, [...OWN_KEYS, ...RUN_KEYS])
  return `unknown key '${key}'${meant === undefined ? '' : `, did you mean '${meant}'?`}; allowed: ${OWN_KEYS.join(', ')}, and the keys of a run`
}

export const invalid = (what: string) => new ManyworldsError('CONFIG_INVALID', `training: ${what}`)
