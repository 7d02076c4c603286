import { pathToFileURL } from 'node:url'
import { type AnyAgent, isAgent } from '../../../agent.ts'
import type { RunConfig } from '../../../run-config.ts'
import { UsageError } from '../../frame/usage-error.ts'

/** The exports of a file that a rollout server uses. */
export interface ServedFile {
  readonly agent: AnyAgent
  /** The configuration of its runs; typed options override it. */
  readonly config: RunConfig
}

/** Loads the file. It may take any time, but its top-level code must finish. */
export async function loadServed(script: string, name: string | undefined): Promise<ServedFile> {
  const idle = new Promise<'idle'>((done) => process.once('beforeExit', () => done('idle')))
  const loaded = (await Promise.race([import(pathToFileURL(script).href), idle])) as object | 'idle'
  if (loaded === 'idle') throw new UsageError(`${script}: a top-level await never settled and the event loop is empty`)
  const exported = loaded as Record<string, unknown>
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
