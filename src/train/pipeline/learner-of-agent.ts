import type { AgentRef } from '../../agent.ts'
import { POLICY } from '../../agent.ts'
import { ManyworldsError } from '../../errors.ts'
import { wordsOf } from '../../text/thrown.ts'
import { type LoadError, loadAgent, readScripts } from '../../worker/load.ts'
import { becomeWorker } from '../../worker/role.ts'
import type { Algorithm } from '../algorithm.ts'
import { gradientLearner } from '../gradient-learner.ts'
import type { Learner } from '../learner.ts'

/** Plain data: it travels to the thread. */
export interface AgentLearnerOptions {
  readonly agent: AgentRef
  readonly entryScript: string | undefined
  readonly algorithm: Algorithm
}

/**
 * The learner of the policy of an agent. It is called in a thread of its own, which finds the agent as a worker does: by importing its
 * module. Runs and trainings of a script that is read so are not begun there.
 */
export async function learnerOfAgent({ agent, entryScript, algorithm }: AgentLearnerOptions): Promise<Learner> {
  becomeWorker({ current: () => undefined })
  readScripts(() => {})
  // What a script prints as it is read was printed before, by the driver.
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
    throw new ManyworldsError('LEARNER_INVALID', `the policy of agent '${agent.name}' cannot learn in this thread`)
  return gradientLearner(await policy.learning.core(), algorithm)
}
