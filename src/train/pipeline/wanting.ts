import type { Policy } from '../../agents/policy.ts'
import { allModels } from '../../models/driver/models-file.ts'
import { MODELS_USED, type ModelsUsed } from '../../models/models-used.ts'
import { registry } from '../../registry.ts'
import type { RunConfig } from '../../run-config.ts'
import type { Learner, LearnerTraining } from '../learner.ts'
import { invalid, type Settings } from './settings.ts'
import type { TaskSets } from './task-sets.ts'

/** A learner that chooses itself what to learn from. It is in the driver: by reference, it would have nobody to ask. */
export type WantingLearner = Learner & Required<Pick<Learner, 'want' | 'validated'>>

export function wantingLearner({ learner }: Pick<Settings, 'learner'>): WantingLearner | undefined {
  if (learner === undefined || !('want' in learner) || learner.want === undefined) return undefined
  if (learner.validated === undefined) throw invalid('a `learner` with `want` needs `validated` too')
  return learner as WantingLearner
}

/** What such a learner is told of its training. */
export function learnerTraining(
  settings: Settings,
  policy: Policy,
  sets: TaskSets,
  config: RunConfig,
): Omit<LearnerTraining, 'notice'> {
  const { agent, evaluate, rollouts } = settings
  const run = registry.find(agent.ref.module, agent.ref.name)?.definition.run as { [MODELS_USED]?: ModelsUsed }
  const ids = (tasks: TaskSets['train']) => tasks.map(({ id }) => id)
  return {
    ...{ policy, models: allModels(config), calls: run?.[MODELS_USED]?.(agent.params) ?? [] },
    ...{ train: ids(sets.train), validation: evaluate ? ids(sets.validation) : [] },
    rollouts: { train: rollouts, validation: evaluate?.rollouts ?? 1 },
    // The best version, and the first one beside it.
    testEpisodes: evaluate
      ? 2 * (sets.test.length * evaluate.testRollouts + sets['off-task'].length * evaluate.rollouts)
      : 0,
  }
}

/** Why options of a training make no sense for a learner that chooses itself. */
const REFUSED: Readonly<Record<string, string>> = {
  overlap: 'what it wants next depends on what came of the episodes before',
  curriculum: 'it chooses its tasks itself',
  tasksPerUpdate: 'it chooses its tasks itself; promptLearner() has `minibatch`',
  tasksPerEpoch: 'an epoch is one iteration of it',
  algorithm: 'it has its own',
  control: "it has its own; promptLearner() has `control: 'random'` and `control: 'blind'`",
}

/** A sweep gives an `algorithm` without a word in it. */
const isGiven = (value: unknown) =>
  value !== undefined && value !== false && !(typeof value === 'object' && Object.keys(value ?? {}).length === 0)

/** Throws if options are not for such a learner; gives the defaults that differ. */
export function wantingDefaults(given: Readonly<Record<string, unknown>>): { readonly rollouts?: number } {
  if (wantingLearner(given as Pick<Settings, 'learner'>) === undefined) return {}
  const wrong = Object.keys(REFUSED).find((key) => isGiven(given[key]))
  if (wrong !== undefined)
    throw invalid(`\`${wrong}\` is not for a learner that chooses what to learn from: ${REFUSED[wrong]}`)
  return { rollouts: 1 }
}
