import { POLICY } from '../../agent.ts'
import type { Policy } from '../../agents/policy.ts'
import { registry } from '../../registry.ts'
import { entryScript } from '../../runners/environment.ts'
import { checkAdvantages } from '../advantage-settings.ts'
import { ALGORITHM_KEYS, type Algorithm, checkedAlgorithm } from '../algorithm.ts'
import { checkKeys } from '../check-keys.ts'
import { checkFailedPolicy } from '../failed-rollouts.ts'
import type { Learner } from '../learner.ts'
import type { LearnerReference } from '../learner-calls.ts'
import { LEARNER_METHODS } from '../learner-messages.ts'
import { runLearnerInThread } from '../learner-thread.ts'
import type { AgentLearnerOptions } from './learner-of-agent.ts'
import { invalid, type Settings } from './settings.ts'

type Learning = Pick<Settings, 'agent' | 'learner' | 'algorithm' | 'overlap' | 'learnerTimeoutMs'>

/** The policy to train. Throws if it cannot be trained. */
export function policyOf({ agent, learner }: Learning): Policy {
  const { module, name } = agent.ref
  const policy = registry.find(module, name)?.definition[POLICY]
  if (policy === undefined)
    throw invalid(`agent '${name}' has no policy; give stepAgent() a trainable \`policy\`, such as softmaxPolicy()`)
  if (learner === undefined && policy.learning === undefined)
    throw invalid(
      `policy '${policy.name}' of agent '${name}' has no learner of its own; give the training a \`learner\`${'texts' in policy ? ', such as promptLearner()' : ', or use softmaxPolicy(), neuralPolicy() or lora()'}`,
    )
  return policy
}

/** Only a learner in a thread of the training has a timeout. */
export function refuseUnusedTimeout({ learner, learnerTimeoutMs }: Learning): void {
  if (learnerTimeoutMs === undefined || learner === undefined || isReference(learner)) return
  throw invalid(
    '`learnerTimeoutMs` has no effect with a learner that you started; give it to runLearnerInThread() or runLearnerInProcess(), or give the `learner` as { module, export }',
  )
}

/** The algorithm with its defaults; undefined if the user provides a learner, which has its own. */
export function algorithmOf(
  { algorithm, learner, overlap }: Learning,
  policy: Policy,
): Required<Algorithm> | undefined {
  checkKeys(algorithm, ['advantages', 'normalizer', 'failed', ...ALGORITHM_KEYS], '`algorithm` of a training')
  const { advantages, normalizer: _, failed, ...own } = algorithm
  if (advantages !== undefined) checkAdvantages(advantages)
  if (failed !== undefined) checkFailedPolicy(failed)
  if (learner === undefined)
    return checkedAlgorithm({
      ...{ loss: { name: 'clip' }, lr: policy.learning!.lr, ...policy.learning!.defaults },
      // The default advantages of the policy, which train its value head if it has one.
      ...(advantages === undefined && policy.learning!.algorithm),
      // With overlap, the acting policy may be older than the learner, so the ratio is measured from the learner.
      ...(overlap && { proximal: 'learner' }),
      ...own,
    })
  const [unused] = Object.keys(own)
  if (unused !== undefined)
    throw invalid(`\`algorithm.${unused}\` has no effect with your own \`learner\`; configure the learner instead`)
  return undefined
}

/** Creates the learner; a new one for each call, unless the user provides it. */
export function openLearner(
  { agent, learner, learnerTimeoutMs }: Learning,
  algorithm: Required<Algorithm> | undefined,
  notice: (line: string) => void,
): Promise<Learner> {
  const limits = { notice, ...(learnerTimeoutMs !== undefined && { learnerTimeoutMs }) }
  if (learner === undefined) {
    const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
    const options: AgentLearnerOptions = { agent: agent.ref, entryScript: entryScript(), algorithm: algorithm! }
    const module = new URL(`./learner-of-agent${extension}`, import.meta.url)
    return runLearnerInThread({ module, export: 'learnerOfAgent', options }, limits)
  }
  return isReference(learner) ? runLearnerInThread(learner, limits) : Promise.resolve(checked(learner))
}

const isReference = (learner: Learner | LearnerReference): learner is LearnerReference =>
  'module' in learner && 'export' in learner

function checked(learner: Learner): Learner {
  const missing = LEARNER_METHODS.find((method) => typeof learner[method] !== 'function')
  if (missing === undefined) return learner
  throw invalid(
    `\`learner\` has no method \`${missing}\`; give a Learner, or { module, export } of a function that returns one`,
  )
}
