import type { Policy } from '../../agents/policy.ts'
import { allModels } from '../../models/driver/models-file.ts'
import { MODELS_USED, type ModelsUsed } from '../../models/models-used.ts'
import { registry } from '../../registry.ts'
import type { RunConfig } from '../../run-config.ts'
import type { Learner, LearnerTraining } from '../learner.ts'
import { invalid, type Settings } from './settings.ts'
import type { TaskSets } from './task-sets.ts'

/**
 * A learner that selects its own training data. It runs in the driver, because by reference it could not ask for data.
 */
export type SelfDirectedLearner = Learner & Required<Pick<Learner, 'want' | 'validated'>>

export function selfDirectedLearner({ learner }: Pick<Settings, 'learner'>): SelfDirectedLearner | undefined {
  if (learner === undefined || !('want' in learner) || learner.want === undefined) return undefined
  if (learner.validated === undefined) throw invalid('a `learner` with the method `want` must also have `validated`')
  return learner as SelfDirectedLearner
}

/** What such a learner is told about its training. */
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
    // The best version and the first one.
    testEpisodes: evaluate
      ? 2 * (sets.test.length * evaluate.testRollouts + sets['off-task'].length * evaluate.rollouts)
      : 0,
  }
}

/** Why options do not apply to a learner that selects its own training data. */
const REFUSED: Readonly<Record<string, string>> = {
  overlap: 'what it requests next depends on the results of earlier episodes',
  curriculum: 'it selects its own tasks',
  tasksPerUpdate: 'it selects its own tasks; use `minibatch` of promptLearner()',
  tasksPerEpoch: 'an epoch is one of its iterations',
  algorithm: 'it has its own algorithm',
  control: "use `control: 'random'` or `control: 'blind'` of promptLearner()",
}

/** A sweep passes an empty `algorithm`. */
const isGiven = (value: unknown) =>
  value !== undefined && value !== false && !(typeof value === 'object' && Object.keys(value ?? {}).length === 0)

/** Throws if an option does not apply to such a learner; returns the defaults that differ. */
export function selfDirectedDefaults(given: Readonly<Record<string, unknown>>): { readonly rollouts?: number } {
  if (selfDirectedLearner(given as Pick<Settings, 'learner'>) === undefined) return {}
  const wrong = Object.keys(REFUSED).find((key) => isGiven(given[key]))
  if (wrong !== undefined)
    throw invalid(`\`${wrong}\` does not apply to a learner that selects its own training data: ${REFUSED[wrong]}`)
  return { rollouts: 1 }
}
