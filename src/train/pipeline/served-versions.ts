import type { Policy, PolicyRef, PolicyServer, ServedVersion } from '../../agents/policy.ts'
import { ManyworldsError } from '../../errors.ts'
import type { ModelsConfig } from '../../models/settings.ts'
import type { Published } from '../learner.ts'

/** A version as the tasks of a run find it: in a blob, or among the run's models. */
export interface ActingVersion {
  readonly ref: PolicyRef
  readonly bytes: Uint8Array | null
  readonly models: ModelsConfig | undefined
}

interface LoadedVersion {
  readonly published: Published
  readonly served: ServedVersion
  runs: number
}

/** How often to check that a server still has the versions in use; a restarted server has lost them. */
const CHECK_MS = 2000

/**
 * The versions of a language-model policy that are loaded on its server. A version is loaded before the first run that
 * uses it, and unloaded after the last. One idle version stays loaded, because the next run most likely uses it.
 */
export class ServedVersions {
  readonly #policy: Policy
  readonly #notice: (line: string) => void
  readonly #loaded = new Map<string, LoadedVersion>()
  #server: Promise<PolicyServer> | undefined
  #checking: NodeJS.Timeout | undefined
  /** Serializes loads and unloads. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(policy: Policy, notice: (line: string) => void) {
    this.#policy = policy
    this.#notice = notice
  }

  /** Serves a version while `body` runs. Policies that are not models keep their bytes in a blob. */
  async use<Result>(published: Published, body: (acting: ActingVersion) => Promise<Result>): Promise<Result> {
    const { serving, model } = this.#policy
    if (serving === undefined || model === undefined) return body({ ...published, models: undefined })
    this.#server ??= serving.start(this.#notice)
    const server = await this.#server
    const used = await this.#inTurn(() => this.#take(server, published))
    this.#checking ??= this.#startChecking(server)
    try {
      const { ref } = published
      return await body({ ref: { ...ref, at: used.served.at }, bytes: null, models: { [model]: used.served.settings } })
    } finally {
      used.runs--
      await this.#inTurn(() => this.#dropOld(server)).catch((error: Error) => this.#notice(error.message))
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#checking)
    this.#checking = undefined
    const server = await this.#server?.catch(() => undefined)
    this.#server = undefined
    if (server === undefined) return
    await this.#last.catch(() => {})
    for (const { served } of this.#loaded.values()) await server.unload(served).catch(() => {})
    this.#loaded.clear()
    await server.close()
  }

  async #take(server: PolicyServer, published: Published): Promise<LoadedVersion> {
    const key = keyOf(published)
    const known = this.#loaded.get(key)
    this.#loaded.delete(key)
    const used = known ?? { published, served: await server.load(published), runs: 0 }
    // The map is ordered by last use.
    this.#loaded.set(key, used)
    used.runs++
    return used
  }

  async #dropOld(server: PolicyServer): Promise<void> {
    const idle = [...this.#loaded].filter(([, { runs }]) => runs === 0)
    for (const [key, { served }] of idle.slice(0, -1)) {
      this.#loaded.delete(key)
      await server.unload(served)
    }
  }

  #startChecking(server: PolicyServer): NodeJS.Timeout | undefined {
    if (server.has === undefined) return undefined
    let isBusy = false
    const check = async () => {
      if (isBusy) return
      isBusy = true
      await this.#inTurn(() => this.#reloadLost(server)).catch(() => {})
      isBusy = false
    }
    return setInterval(() => void check(), CHECK_MS).unref()
  }

  /**
   * Reloads versions that the server has lost. If the server does not answer, nothing is done; the model calls retry by
   * themselves.
   */
  async #reloadLost(server: PolicyServer): Promise<void> {
    for (const { published, served, runs } of this.#loaded.values()) {
      if (runs === 0 || (await server.has!(served))) continue
      this.#notice(`${served.at.served} no longer has '${served.at.model}' (it may have restarted); loading it again`)
      await server.load(published)
    }
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const next = this.#last.then(work, work)
    this.#last = next
    next.catch(() => {})
    return next
  }
}

function keyOf({ ref }: Published): string {
  if (ref.digest === null)
    throw new ManyworldsError(
      'LEARNER_INVALID',
      `version ${ref.version} of policy '${ref.policy}' has no digest, which is needed to serve it`,
    )
  return `${ref.version} ${ref.digest}`
}
