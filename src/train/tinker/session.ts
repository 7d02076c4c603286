import { ManyworldsError } from '../../errors.ts'
import { SDK_VERSION, type TinkerCall, type TinkerCalls, type TinkerResult } from './calls.ts'

/** The service ends a session without heartbeats. */
const HEARTBEAT_MS = 10_000

/** Limits and flags that the service sends to its clients. */
interface ClientConfig {
  /** Per forward_backward call. */
  readonly maxData: number
  readonly maxBytes: number
  /** Whether a model is created from a checkpoint with one call instead of two. */
  readonly createsByLoad: boolean
}

/** A session, in which models are created; it lives as long as heartbeats arrive. */
export class TinkerSession {
  readonly id: string
  readonly config: ClientConfig
  readonly #calls: TinkerCalls
  #models = 0
  #samplers = 0

  private constructor(calls: TinkerCalls, id: string, config: ClientConfig) {
    this.#calls = calls
    this.id = id
    this.config = config
    const heart = setInterval(() => this.#beat(), HEARTBEAT_MS).unref()
    // Without heartbeats, the service ends the session.
    calls.signal.addEventListener('abort', () => clearInterval(heart), { once: true })
  }

  static async open(calls: TinkerCalls, policy: string): Promise<TinkerSession> {
    const about = { sdk_version: SDK_VERSION }
    const flags = await calls.post({ path: 'client/config', body: about })
    calls.exchangesKey = flags.pjwt_auth_enabled === true
    const body = { ...about, type: 'create_session', tags: ['manyworlds'], user_metadata: { policy } }
    const { session_id } = await calls.post({ path: 'create_session', body })
    return new TinkerSession(calls, text('create_session', 'session_id', session_id), {
      maxData: whole(flags.fwdbwd_max_chunk_len, 1024),
      maxBytes: whole(flags.fwdbwd_max_chunk_bytes_count, 5_000_000),
      createsByLoad: flags.create_model_via_load_weights === true,
    })
  }

  /** Models and samplers are numbered from 0. */
  nextModel(): number {
    return this.#models++
  }

  async openSampler(of: { readonly model_path: string } | { readonly base_model: string }): Promise<string> {
    const body = { session_id: this.id, sampling_session_seq_id: this.#samplers++, ...of }
    const call = { path: 'create_sampling_session', body: { ...body, type: 'create_sampling_session' } }
    const { sampling_session_id } = await this.#calls.post(call)
    return text(call.path, 'sampling_session_id', sampling_session_id)
  }

  /** Sends an operation; resolves to a function that fetches its result. */
  async submit(call: TinkerCall, wants: 'json' | 'protobuf' = 'json'): Promise<() => Promise<TinkerResult>> {
    const deadline = this.#calls.deadline()
    const { request_id } = await this.#calls.post(call, deadline)
    const id = text(call.path, 'request_id', request_id)
    return () => this.#calls.result(call.path, id, wants, deadline)
  }

  /** Sends an operation and waits for its result. */
  async run(call: TinkerCall): Promise<Readonly<Record<string, unknown>>> {
    return objectIn(call.path, await (await this.submit(call))())
  }

  /**
   * A failed heartbeat is ignored, because the next one follows soon. If the session has ended, the next operation
   * fails.
   */
  #beat(): void {
    const body = { session_id: this.id, type: 'session_heartbeat' }
    this.#calls.post({ path: 'session_heartbeat', body }, performance.now() + HEARTBEAT_MS).catch(() => {})
  }
}

export function objectIn(call: string, { json }: TinkerResult): Readonly<Record<string, unknown>> {
  if (json !== undefined) return json
  throw new ManyworldsError('LEARNER_FAILED', `Tinker answered ${call} with Protobuf instead of JSON`)
}

export function decoded<T>(call: string, { bytes }: TinkerResult, decode: (bytes: Uint8Array) => T): T {
  if (bytes === undefined)
    throw new ManyworldsError('LEARNER_FAILED', `Tinker answered ${call} with JSON instead of Protobuf`)
  try {
    return decode(bytes)
  } catch (cause) {
    const why = (cause as Error).message
    throw new ManyworldsError('LEARNER_FAILED', `cannot decode the answer of Tinker to ${call}: ${why}`, { cause })
  }
}

/** A required string in an answer. */
export function text(call: string, key: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value
  throw new ManyworldsError(
    'LEARNER_FAILED',
    `Tinker answered ${call} without \`${key}\`; check that \`baseURL\` is its address`,
  )
}

const whole = (value: unknown, otherwise: number): number =>
  Number.isInteger(value) && (value as number) > 0 ? (value as number) : otherwise
