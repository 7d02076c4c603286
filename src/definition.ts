import * as crypto from 'node:crypto'
import type { AgentRef, RunnableDefinition } from './agent.ts'
import { caller, callerModule, oneSpelling, whyNoModule } from './call-site.ts'
import { ManyworldsError } from './errors.ts'
import { registry } from './registry.ts'

/** Registers code that workers find in its module by name. `sources`: the texts that its fingerprint is made of. */
export function register(definition: RunnableDefinition, module: string, sources: readonly unknown[]): AgentRef {
  const { name } = definition
  const fingerprint = fingerprintOf([name, ...sources])
  registry.add(module, name, definition, fingerprint, caller()?.inFunction ?? false)
  return { name, module, fingerprint }
}

/** The module of a definition: the given one, or the caller's. `what`: for errors, such as "defineAgent: agent 'x'". */
export function moduleOf(given: string | URL | undefined, what: string): string {
  if (given !== undefined) {
    const url = String(given)
    if (!URL.canParse(url))
      throw new ManyworldsError(
        'AGENT_INVALID',
        `${what}: \`module\` must be a URL such as import.meta.url, it is '${url}'`,
      )
    return oneSpelling(url)
  }
  const url = callerModule()
  if (url === undefined) throw new ManyworldsError('AGENT_MODULE_UNKNOWN', `${what} ${whyNoModule()}`)
  return url
}

/** A hash of name and sources. Undefined under a test runner, which rewrites sources. */
function fingerprintOf(sources: readonly unknown[]): string | undefined {
  if (process.env.VITEST !== undefined || process.env.JEST_WORKER_ID !== undefined) return undefined
  return crypto.hash('sha256', sources.map(String).join('\0')).slice(0, 16)
}
