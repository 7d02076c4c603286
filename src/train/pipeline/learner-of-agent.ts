import type { AgentRef } from '../../agent.ts'
import { POLICY } from '../../agent.ts'
import { ManyworldsError } from '../../errors.ts'
import { wordsOf } from '../../text/thrown.ts'
import { loadAgent, readScripts } from '../../worker/load.ts'
import type { LoadError } from '../../worker/load-error.ts'
import { becomeWorker } from '../../worker/role.ts'
import type { Algorithm } from '../algorithm.ts'
import { gradientLearner } from '../gradient-learner.ts'
import type { Learner, LearnerHost } from '../learner.ts'

/** Plain data, because it is sent to the thread. */
export interface AgentLearnerOptions {
  readonly agent: AgentRef
  readonly entryScript: string | undefined
  readonly algorithm: Algorithm
}

/**
 * Makes the learner of an agent's policy. Called in the learner's thread, which finds the agent as a worker does: by
 * importing its module. Runs and trainings of an imported script are not started there.
 */
export async function learnerOfAgent(
  { agent, entryScript, algorithm }: AgentLearnerOptions,
  host: LearnerHost,
): Promise<Learner> {
  becomeWorker({ current: () => undefined })
  readScripts(() => {})
  // The driver has already printed the script's output.
  const { write } = process.stdout
  process.stdout.write = () => true
  const { [POLICY]: policy } = await loadAgent(agent, entryScript)
    .catch((error: LoadError) => {
      throw new ManyworldsError('LEARNER_INVALID', wordsOf(error).message, { cause: error })
    })
    .finally(() => {
      process.stdout.write = write
    })
  if (policy?.learning === undefined)
    throw new ManyworldsError(
      'LEARNER_INVALID',
      `the policy of agent '${agent.name}' has no \`learning\`, so it cannot be trained; use softmaxPolicy(), neuralPolicy() or lora()`,
    )
  return gradientLearner(await policy.learning.core(host), algorithm)
}
