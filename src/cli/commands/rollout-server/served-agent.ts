import { pathToFileURL } from 'node:url'
import { type AnyAgent, isAgent } from '../../../agent.ts'
import type { RunConfig } from '../../../run-config.ts'
import { UsageError } from '../../frame/usage-error.ts'

/** What a file has for a rollout server. */
export interface ServedFile {
  readonly agent: AnyAgent
  /** How its runs are configured, below what was typed. */
  readonly config: RunConfig
}

/** Loads the file, which may take its time, but must come to an end. */
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

/** As default, as `agent`, by its own name if that was typed, or as the only one. */
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
      ? `${script} exports no agent: export the one to be run as default`
      : `${script} exports several agents: ${names}; export one as default, or name it with --agent`,
  )
}
