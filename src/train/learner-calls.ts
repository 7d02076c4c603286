import type { PolicyRef } from '../agents/policy.ts'
import { ManyworldsError } from '../errors.ts'
import { wordsOf } from '../text/thrown.ts'
import { Heartbeat, SILENT_MS } from './heartbeat.ts'
import type { Batch, Learner, LearnerStart, Metrics, Published } from './learner.ts'
import type { FromLearner, LearnerCall, LearnerMethod, SentError } from './learner-messages.ts'

/**
 * A learner by reference: a module, the name of an exported function that makes a learner, and the options passed to
 * it.
 */
export interface LearnerReference {
  readonly module: string | URL
  readonly export: string
  /** Plain data. */
  readonly options?: unknown
}

/** Limits for a learner in its own thread or process. */
export interface LearnerLimits {
  /** Timeout of one call, such as an update; the learner is killed when it expires. Default: unlimited. */
  readonly learnerTimeoutMs?: number
  /** Timeout for loading the module. Default one minute. */
  readonly loadMs?: number
  /** The maximum size of its JavaScript heap; beyond that, the learner is killed. Default: Node's. */
  readonly memoryMb?: number
  /** A learner's process that sent no heartbeat for this long is killed. Default 2 minutes. */
  readonly silentMs?: number
  /** Receives messages about slow steps, such as creating a Python environment. */
  readonly notice?: (line: string) => void
}

/** A learner in its own thread or process. */
export interface RunningLearner extends Learner {
  /** True once it is unusable: it exited, was terminated, or a call timed out. False after a failed update. */
  readonly ended: boolean
  values(observations: readonly unknown[]): Promise<Float64Array>
  /** Kills it at once. Pending and later calls fail with `LEARNER_FAILED`. */
  terminate(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** The connection to a learner in a thread or process. */
export interface LearnerChannel {
  /** What it is, for messages. */
  readonly kind: 'thread' | 'process'
  /** Throws if the message cannot be copied. */
  post(message: LearnerCall): void
  /** Whether the learner keeps this process from exiting. */
  keepAlive(alive: boolean): void
  kill(): Promise<void>
}

const LOAD_MS = 60_000
const READY = 0

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: ManyworldsError) => void
  readonly timer: NodeJS.Timeout | undefined
}

/** Checks at run time, for programs without a type checker. */
export function moduleUrl({ module }: LearnerReference): string {
  const url = String(module)
  if (URL.canParse(url)) return url
  throw new ManyworldsError(
    'LEARNER_INVALID',
    `the \`module\` of a learner must be a URL, such as new URL('./learner.ts', import.meta.url); it is '${url}'`,
  )
}

export const optionsNotPlain = (cause: unknown): ManyworldsError =>
  new ManyworldsError(
    'LEARNER_INVALID',
    `\`options\` of a learner must be plain data that can be cloned: ${wordsOf(cause).message}`,
    {
      cause,
    },
  )

/**
 * Sends calls to a learner and receives its answers. A call may take as long as it computes. It ends with an answer,
 * when the learner's thread or process exits, when the process stops sending heartbeats, or by `learnerTimeoutMs`. A
 * thread sends no heartbeats: it cannot while it computes, and it stops only together with this process.
 */
export class LearnerCalls implements RunningLearner {
  readonly #channel: LearnerChannel
  readonly #limits: LearnerLimits
  readonly #heartbeat: Heartbeat | undefined
  readonly #waiting = new Map<number, Waiting>()
  #calls = READY
  /** Why the learner is unusable. */
  #ended: ManyworldsError | undefined

  constructor(channel: LearnerChannel, limits: LearnerLimits) {
    this.#channel = channel
    this.#limits = limits
    const { silentMs = SILENT_MS } = limits
    if (channel.kind === 'process')
      this.#heartbeat = new Heartbeat(silentMs, () =>
        this.#kill(`was killed, because it sent no heartbeat for ${silentMs / 1000} s`),
      )
  }

  get ended(): boolean {
    return this.#ended !== undefined
  }

  async ready({ loadMs = LOAD_MS }: LearnerLimits): Promise<void> {
    const late = `did not load its module within ${loadMs} ms (\`loadMs\`)`
    await new Promise((resolve, reject) => {
      if (this.#ended) reject(this.#ended)
      else this.#wait(READY, loadMs, late, resolve, reject)
    })
  }

  start = (options: LearnerStart): Promise<Published> => this.#call('start', options)
  update = (batch: Batch): Promise<Metrics> => this.#call('update', batch)
  values = (observations: readonly unknown[]): Promise<Float64Array> => this.#call('values', observations)
  publish = (): Promise<Published> => this.#call('publish')
  retire = (ref: PolicyRef): Promise<void> => this.#call('retire', ref)
  save = (): Promise<Uint8Array> => this.#call('save')
  load = (state: Uint8Array): Promise<void> => this.#call('load', state)

  async terminate(): Promise<void> {
    this.end('was terminated')
    await this.#channel.kill()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.terminate()
  }

  receive(message: FromLearner): void {
    this.#heartbeat?.beat()
    switch (message.type) {
      case 'heartbeat':
        return
      case 'notice':
        return this.#limits.notice?.(message.line)
      case 'ready':
        return this.#take(READY)?.resolve(undefined)
      case 'unusable': {
        const { error } = message
        this.#take(READY)?.reject(received(error, 'LEARNER_INVALID', 'cannot create the learner: '))
        this.end('could not create the learner')
        return void this.#channel.kill()
      }
      case 'result':
        return this.#take(message.id)?.resolve(message.value)
      case 'error':
        this.#take(message.id)?.reject(received(message.error, 'LEARNER_FAILED', ''))
        // Immediately, because a caller that receives the error checks `ended`.
        if (message.ended) this.end('exited, because its compute process died')
        return
      case 'ended':
        return this.end(message.how)
    }
  }

  /** Marks the learner as unusable; the first reason is kept. */
  end(how: string, cause?: unknown): void {
    this.#ended ??= new ManyworldsError('LEARNER_FAILED', `the ${this.#channel.kind} of the learner ${how}`, { cause })
    for (const id of [...this.#waiting.keys()]) this.#take(id)!.reject(this.#ended)
  }

  #call<T>(method: LearnerMethod, ...args: readonly unknown[]): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#ended) return reject(new ManyworldsError('LEARNER_FAILED', this.#ended.message, { cause: this.#ended }))
      const id = ++this.#calls
      try {
        this.#channel.post({ id, method, args })
      } catch (error) {
        // Functions and some class instances cannot be cloned.
        const message = `the arguments of \`${method}\` cannot be sent to the learner's ${this.#channel.kind}: ${wordsOf(error).message}`
        return reject(new ManyworldsError('ROW_INVALID', message, { cause: error }))
      }
      const { learnerTimeoutMs: ms } = this.#limits
      const late = `was killed, because it did not answer \`${method}\` within ${ms} ms (\`learnerTimeoutMs\`)`
      this.#wait(id, ms, late, resolve as (value: unknown) => void, reject)
    })
  }

  #wait(
    id: number,
    ms: number | undefined,
    late: string,
    resolve: Waiting['resolve'],
    reject: Waiting['reject'],
  ): void {
    const timer = ms === undefined ? undefined : setTimeout(() => this.#kill(late), ms)
    if (this.#waiting.size === 0) this.#isAwaited(true)
    this.#waiting.set(id, { resolve, reject, timer })
  }

  #kill(why: string): void {
    this.end(why)
    void this.#channel.kill()
  }

  /** The learner keeps this process alive, and must send heartbeats, only while a call is pending. */
  #isAwaited(isAwaited: boolean): void {
    this.#channel.keepAlive(isAwaited)
    this.#heartbeat?.watch(isAwaited)
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    clearTimeout(waiting?.timer)
    if (this.#waiting.delete(id) && this.#waiting.size === 0) this.#isAwaited(false)
    return waiting
  }
}

/** Recreates an error of the learner; the cause has its original stack. */
function received(
  { code, name, message, stack }: SentError,
  otherwise: 'LEARNER_INVALID' | 'LEARNER_FAILED',
  prefix: string,
): ManyworldsError {
  const cause = new Error(message)
  cause.name = name
  if (stack !== undefined) cause.stack = stack
  return new ManyworldsError(code ?? otherwise, `${prefix}${message}`, { cause })
}
