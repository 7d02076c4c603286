import { type AnyAgent, isAgent } from '../../../agent.ts'
import type { RunConfig } from '../../../run-config.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { exportsOf } from '../../script/exports-of.ts'

/** The exports of a file that a rollout server uses. */
export interface ServedFile {
  readonly agent: AnyAgent
  /** The configuration of its runs; typed options override it. */
  readonly config: RunConfig
}

export async function loadServed(script: string, name: string | undefined): Promise<ServedFile> {
  const exported = await exportsOf(script)
  const { config = {} } = exported
  if (typeof config !== 'object' || config === null)
    throw new UsageError(`${script} exports \`config\`, which is not a RunConfig`)
  return { agent: agentIn(exported, script, name), config }
}

/** The agent with the typed name; without a name, the default export, the export `agent`, or the only agent. */
function agentIn(exported: Readonly<Record<string, unknown>>, script: string, name: string | undefined): AnyAgent {
  const found = Object.entries(exported).flatMap(([key, value]) => (isAgent(value) ? [{ key, agent: value }] : []))
  const different = [...new Map(found.map(({ agent }) => [agent.name, agent])).values()]
  const names = different.map((agent) => agent.name).join(', ')
  if (name !== undefined) {
    const named = different.find((agent) => agent.name === name)
    if (named) return named
    throw new UsageError(`${script} exports no agent '${name}'${names === '' ? '' : `; it exports ${names}`}`)
  }
  const chosen = ['default', 'agent'].map((key) => found.find((one) => one.key === key)).find(Boolean)?.agent
  if (chosen) return chosen
  if (different.length === 1) return different[0]!
  throw new UsageError(
    different.length === 0
      ? `${script} exports no agent: export one as default`
      : `${script} exports several agents: ${names}; export one as default, or name it with --agent`,
  )
}
