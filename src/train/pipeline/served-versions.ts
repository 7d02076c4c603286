import type { Policy, PolicyRef, PolicyServer, ServedVersion } from '../../agents/policy.ts'
import { ManyworldsError } from '../../errors.ts'
import type { ModelsConfig } from '../../models/settings.ts'
import type { Published } from '../learner.ts'

/** A version as the tasks of a run find it: in a blob, or among the models of the run. */
export interface Acting {
  readonly ref: PolicyRef
  readonly bytes: Uint8Array | null
  readonly models: ModelsConfig | undefined
}

interface InUse {
  readonly published: Published
  readonly served: ServedVersion
  runs: number
}

/** How often a server is asked whether it still has the versions that are called: one that was started anew has lost them. */
const LOOK_MS = 2000

/**
 * The versions of a policy that is a language model, on the server that has them. A version is loaded before the first run that calls it, and
 * unloaded after the last: one more than are in use stays, because the next run most likely has it.
 */
export class ServedVersions {
  readonly #policy: Policy
  readonly #notice: (line: string) => void
  readonly #loaded = new Map<string, InUse>()
  #server: Promise<PolicyServer> | undefined
  #looking: NodeJS.Timeout | undefined
  /** Loads and unloads, one after the other. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(policy: Policy, notice: (line: string) => void) {
    this.#policy = policy
    this.#notice = notice
  }

  /** Has a version served while the body runs. Policies that are not models have their bytes in a blob. */
  async use<Result>(published: Published, body: (acting: Acting) => Promise<Result>): Promise<Result> {
    const { serving, model } = this.#policy
    if (serving === undefined || model === undefined) return body({ ...published, models: undefined })
    this.#server ??= serving.start(this.#notice)
    const server = await this.#server
    const used = await this.#inTurn(() => this.#take(server, published))
    this.#looking ??= this.#look(server)
    try {
      const { ref } = published
      return await body({ ref: { ...ref, at: used.served.at }, bytes: null, models: { [model]: used.served.settings } })
    } finally {
      used.runs--
      await this.#inTurn(() => this.#dropOld(server)).catch((error: Error) => this.#notice(error.message))
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#looking)
    this.#looking = undefined
    const server = await this.#server?.catch(() => undefined)
    this.#server = undefined
    if (server === undefined) return
    await this.#last.catch(() => {})
    for (const { served } of this.#loaded.values()) await server.unload(served).catch(() => {})
    this.#loaded.clear()
    await server.close()
  }

  async #take(server: PolicyServer, published: Published): Promise<InUse> {
    const key = keyOf(published)
    const known = this.#loaded.get(key)
    this.#loaded.delete(key)
    const used = known ?? { published, served: await server.load(published), runs: 0 }
    // The last one used is the last of the map.
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

  #look(server: PolicyServer): NodeJS.Timeout | undefined {
    if (server.has === undefined) return undefined
    let isBusy = false
    const look = async () => {
      if (isBusy) return
      isBusy = true
      await this.#inTurn(() => this.#bringBack(server)).catch(() => {})
      isBusy = false
    }
    return setInterval(() => void look(), LOOK_MS).unref()
  }

  /** A server that does not answer is left to the calls themselves, which are tried again. */
  async #bringBack(server: PolicyServer): Promise<void> {
    for (const { published, served, runs } of this.#loaded.values()) {
      if (runs === 0 || (await server.has!(served))) continue
      this.#notice(`${served.at.served} has lost '${served.at.model}', and gets it again`)
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
      `version ${ref.version} of '${ref.policy}' has no digest to serve it by`,
    )
  return `${ref.version} ${ref.digest}`
}
