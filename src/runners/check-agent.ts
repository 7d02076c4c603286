import type { AnyAgent } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import { packParams } from '../executor/agents.ts'

const TEST_FILE = /[.-](test|spec|bench)\.[cm]?[jt]sx?$/
const good = new WeakSet<AnyAgent>()

/**
 * Refuses an agent that a worker could not import, or whose params could not be sent, before anything starts. `inDriver`: no
 * worker imports it.
 */
export function checkAgent(agent: AnyAgent, inDriver: boolean): void {
  if (good.has(agent)) return
  if (inDriver) return void packParams(agent)
  const { module, name } = agent.ref
  if (TEST_FILE.test(module.replace(/[?#].*$/, '')))
    throw new ManyworldsError(
      'AGENT_IN_TEST_FILE',
      `agent '${name}' is defined in the test file ${module}; a worker that imports it would run the tests. Move the agent to a module of its own and import it from the test, or run it in the process of the test with engine: inline()`,
    )
  packParams(agent)
  good.add(agent)
}
