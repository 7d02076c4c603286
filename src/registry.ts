import type { RunnableDefinition } from './agent.ts'
import { ManyworldsError } from './errors.ts'

/**
 * The agents that this process has defined, by module and name. It is on globalThis because a process may hold two copies of
 * this package (CommonJS and ESM, or a bundled one), and a worker must find the agents of both.
 */
interface Registry {
  readonly agents: Map<string, { definition: RunnableDefinition; fingerprint: string | undefined; made: boolean }>
  /** The user's modules are bundled in one file: only its source map tells them apart. */
  bundled: boolean
  /** Called whenever an agent is defined. */
  onDefine: (() => void) | undefined
}

const KEY = Symbol.for('manyworlds.registry')
const holder = globalThis as unknown as Record<symbol, Registry | undefined>
holder[KEY] ??= { agents: new Map(), bundled: false, onDefine: undefined }
const shared: Registry = holder[KEY]

export interface DefinedAgent {
  readonly key: string
  readonly fingerprint: string | undefined
  readonly made: boolean
}

const NOT_HERE: RunnableDefinition = {
  name: '',
  run() {
    throw new Error('this agent is defined in another thread')
  },
}

const keyOf = (module: string, name: string) => `${module}\0${name}`

// A test runner evaluates modules again for each test file in one process, so a second definition is normal there.
const reloads = process.env.VITEST !== undefined || process.env.JEST_WORKER_ID !== undefined

export const registry = {
  /** `made`: defined inside a function, not at the module's top level. */
  add(
    module: string,
    name: string,
    definition: RunnableDefinition,
    fingerprint: string | undefined,
    made: boolean,
  ): void {
    const key = keyOf(module, name)
    if (shared.agents.has(key) && !reloads)
      throw new ManyworldsError(
        'AGENT_REDEFINED',
        `agent '${name}' is defined twice in ${module}; workers find agents by name, so give each its own (or one agent with \`params\`)`,
      )
    shared.agents.set(key, { definition, fingerprint, made })
    shared.onDefine?.()
  },
  find(module: string, name: string) {
    return shared.agents.get(keyOf(module, name))
  },
  names(module: string): string[] {
    const prefix = keyOf(module, '')
    return [...shared.agents.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length))
  },
  /** The agents without their code, for the thread of `syncRunTask`, which loads no user module. */
  list(): DefinedAgent[] {
    return [...shared.agents].map(([key, { fingerprint, made }]) => ({ key, fingerprint, made }))
  },
  adopt(agents: readonly DefinedAgent[]): void {
    for (const { key, fingerprint, made } of agents) shared.agents.set(key, { definition: NOT_HERE, fingerprint, made })
  },
  get bundled() {
    return shared.bundled
  },
  set bundled(bundled: boolean) {
    shared.bundled = bundled
  },
  set onDefine(listener: (() => void) | undefined) {
    shared.onDefine = listener
  },
}
