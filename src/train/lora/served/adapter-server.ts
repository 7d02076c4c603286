import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PolicyRef, PolicyServer, ServedVersion } from '../../../agents/policy.ts'
import { ManyworldsError } from '../../../errors.ts'
import { callURL, withoutSlash } from '../../../models/address.ts'
import { HttpFailure, post } from '../../../models/http.ts'
import { writePeftFolder } from '../peft-folder.ts'

/** Your own server, which loads LoRA adapters while it runs. */
export interface AdapterServerOptions {
  /** Including the version: `http://gpu1:8000/v1`. */
  readonly baseURL: string
  /** The environment variable of the driver that contains the server's key. */
  readonly apiKeyEnv?: string
  /** Where adapters are written, one folder each, on a disk shared with the server. */
  readonly folder: string
  /** The path of the same folder on the server. Default: `folder`. */
  readonly serverFolder?: string
  /**
   * The server's log-probabilities: `'processed'` after temperature, `'raw'` before. Default `'raw'`, which suffices at
   * temperature 1.
   */
  readonly logProbs?: 'raw' | 'processed'
  /** Maximum concurrent calls. Default 256. */
  readonly maxConcurrent?: number
  /** Timeout of one call, in milliseconds. Default 300,000. */
  readonly timeoutMs?: number
}

/** The differences between servers. */
export interface AdapterDialect {
  readonly name: string
  /** The paths for loading and unloading, relative to the server's origin or to its base URL. */
  readonly load: string
  readonly unload: string
  readonly behind: 'origin' | 'baseURL'
  /** The `model` field of a call. */
  model(adapter: string): string
  /** Extra fields of every call: the full distribution, without the sampling defaults of the model's files. */
  readonly body: Readonly<Record<string, unknown>>
}

/** Enough for an adapter of several gigabytes on a shared disk. */
const LOAD_MS = 300_000
const LIST_MS = 10_000
/** How long a server may take to restart; some take minutes to load a model. */
const RESTART_MS = 600_000
const RETRY_MS = 1000
const MAX_CONCURRENT = 256
/** Effectively no rate limit: `maxConcurrent` limits the calls to your own server. */
const NO_LIMIT_PER_MINUTE = 1_000_000_000

interface Version {
  readonly ref: PolicyRef
  readonly bytes: Uint8Array | null
}

/** Loads adapters into vLLM or SGLang. Each version has its own name, so that no call can reach another version. */
export class AdapterServer implements PolicyServer {
  readonly #options: AdapterServerOptions
  readonly #dialect: AdapterDialect
  readonly #base: string | undefined
  readonly #headers: Readonly<Record<string, string>>
  #wasReachable = false

  constructor(options: AdapterServerOptions, dialect: AdapterDialect, base: string | undefined) {
    const key = options.apiKeyEnv === undefined ? undefined : process.env[options.apiKeyEnv]
    if (options.apiKeyEnv !== undefined && !key)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `${dialect.name}: the environment variable ${options.apiKeyEnv} is not set`,
      )
    this.#options = options
    this.#dialect = dialect
    this.#base = base
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
  }

  /** Loads a version. A server that was reachable before may be restarting, so its connection errors are retried. */
  async load(version: Version): Promise<ServedVersion> {
    const until = performance.now() + (this.#wasReachable ? RESTART_MS : 0)
    for (;;)
      try {
        const served = await this.#load(version)
        this.#wasReachable = true
        return served
      } catch (error) {
        // A refusal has no `cause`, and would be repeated.
        if ((error as Error).cause === undefined || performance.now() > until) throw error
        await sleep(RETRY_MS)
      }
  }

  async #load({ ref, bytes }: Version): Promise<ServedVersion> {
    const adapter = adapterName(ref)
    const version = this.#versionOf(adapter)
    if (await this.has(version)) return version
    if (bytes === null) throw this.#wrong(`version ${ref.version} of policy '${ref.policy}' has no weights to load`)
    const { folder, serverFolder = folder } = this.#options
    await writePeftFolder(join(folder, adapter), bytes, this.#base)
    const path = `${withoutSlash(serverFolder)}/${adapter}`
    await this.#ask(this.#dialect.load, { lora_name: adapter, lora_path: path }, /already (been )?loaded/i)
    return version
  }

  async unload({ at }: ServedVersion): Promise<void> {
    const adapter = this.#adapterOf(at.model)
    // A restarted server has already lost it.
    await this.#ask(this.#dialect.unload, { lora_name: adapter }, /not (found|loaded)|does not exist|cannot be found/i)
    await rm(join(this.#options.folder, adapter), { recursive: true, force: true })
  }

  /** Both servers list their adapters among their models. */
  async has({ at }: ServedVersion): Promise<boolean> {
    const listed = await this.#models()
    return listed.some((id) => id === at.model || id === this.#adapterOf(at.model))
  }

  async close(): Promise<void> {}

  #versionOf(adapter: string): ServedVersion {
    const { baseURL, apiKeyEnv, logProbs = 'raw', maxConcurrent = MAX_CONCURRENT, timeoutMs } = this.#options
    const model = this.#dialect.model(adapter)
    return {
      at: { served: this.#dialect.name, model },
      settings: {
        ...{ baseURL, model, maxConcurrent, requestsPerMinute: NO_LIMIT_PER_MINUTE },
        ...(apiKeyEnv !== undefined && { apiKeyEnv }),
        ...(timeoutMs !== undefined && { timeoutMs }),
        tokens: logProbs === 'processed' ? 'processed' : true,
        extraBody: this.#dialect.body,
      },
    }
  }

  #adapterOf(model: string): string {
    const before = this.#dialect.model('')
    return model.slice(before.length)
  }

  async #models(): Promise<readonly string[]> {
    const url = callURL(this.#options.baseURL, '/models')
    let listed: unknown
    try {
      const response = await fetch(url, { headers: this.#headers, signal: AbortSignal.timeout(LIST_MS) })
      if (!response.ok) throw new Error(`HTTP ${response.status}`)
      listed = await response.json()
    } catch (cause) {
      throw this.#wrong(`${url} is not reachable: ${wordsOf(cause)}`, cause)
    }
    const data = (listed as { data?: unknown } | null)?.data
    return (Array.isArray(data) ? data : []).flatMap(({ id }: { id?: unknown }) => (typeof id === 'string' ? [id] : []))
  }

  /** `fine`: matches an error response that means there is nothing to do. */
  async #ask(path: string, body: object, fine: RegExp): Promise<void> {
    const { baseURL } = this.#options
    const url = callURL(this.#dialect.behind === 'origin' ? new URL(baseURL).origin : baseURL, path)
    try {
      const call = { url, headers: this.#headers, body: JSON.stringify(body), timeoutMs: LOAD_MS, signal: undefined }
      const { status, body: reply } = await post(call)
      if (status < 400 || fine.test(reply.slice(0, 2000))) return
      throw this.#wrong(`${url} answered HTTP ${status}: ${reply.slice(0, 300)}. ${ADVICE[this.#dialect.name] ?? ''}`)
    } catch (cause) {
      if (!(cause instanceof HttpFailure)) throw cause
      throw this.#wrong(`${url} is not reachable: ${cause.message}`, cause)
    }
  }

  #wrong(what: string, cause?: unknown): ManyworldsError {
    return new ManyworldsError('POLICY_NOT_SERVED', `${this.#dialect.name}: ${what}`, { cause })
  }
}

const ADVICE: Readonly<Record<string, string>> = {
  vllm: 'Start vLLM with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True',
  sglang: 'Start SGLang with --enable-lora',
}

/** Includes the digest, so that no other version of any training has the same name. */
export const adapterName = ({ policy, version, digest }: PolicyRef): string =>
  `${policy.replace(/[^\w-]/g, '-')}-v${version}-${digest?.slice(0, 12) ?? 'base'}`

/** `fetch` throws only "fetch failed"; the reason is in its cause. */
function wordsOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: { code?: string; message?: string } }
  return cause?.code ?? cause?.message ?? message
}
