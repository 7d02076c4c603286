import type { AnyAgent } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import { packParams } from '../executor/agents.ts'

const TEST_FILE = /[.-](test|spec|bench)\.[cm]?[jt]sx?$/
const good = new WeakSet<AnyAgent>()

/** An agent that a worker could not import, or whose params could not be sent to it, is refused before anything starts. */
export function checkAgent(agent: AnyAgent): void {
  if (good.has(agent)) return
  const { module, name } = agent.ref
  if (TEST_FILE.test(module.replace(/[?#].*$/, '')))
    throw new ManyworldsError(
      'AGENT_IN_TEST_FILE',
      `agent '${name}' is defined in the test file ${module}; a worker that imports it would run the tests. Move the agent to a module of its own and import it from the test`,
    )
  packParams(agent)
  good.add(agent)
}
