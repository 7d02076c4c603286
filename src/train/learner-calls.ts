import type { PolicyRef } from '../agents/policy.ts'
import { ManyworldsError } from '../errors.ts'
import { wordsOf } from '../text/thrown.ts'
import type { Batch, Learner, LearnerStart, Metrics, Published } from './learner.ts'
import type { FromLearner, LearnerCall, LearnerMethod, SentError } from './learner-messages.ts'

/** A learner by reference: a module, the name of a function that it exports and that makes a learner, and what that is given. */
export interface LearnerReference {
  readonly module: string | URL
  readonly export: string
  /** Plain data. */
  readonly options?: unknown
}

/** Limits of a learner in a thread or process of its own. */
export interface LearnerLimits {
  /** How long one call may take, an update above all. The learner is ended then. Default 10 minutes. */
  readonly callMs?: number
  /** How long the module may take to load. Default one minute. */
  readonly loadMs?: number
  /** How much memory its JavaScript may take; above that, only the learner ends. Default: as Node has it. */
  readonly memoryMb?: number
}

/** A learner in a thread or a process of its own. */
export interface RunningLearner extends Learner {
  /** True once it can do nothing more: it ended, was terminated, or took too long. What failed before is an update, not the learner. */
  readonly ended: boolean
  values(observations: readonly unknown[]): Promise<Float64Array>
  /** Ends it at once. Calls that are not answered, and later ones, fail with `LEARNER_FAILED`. */
  terminate(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** The way to a learner elsewhere. */
export interface LearnerChannel {
  /** What it is, for messages. */
  readonly kind: 'thread' | 'process'
  /** Throws if the message cannot be copied. */
  post(message: LearnerCall): void
  /** Whether it keeps this process from ending. */
  keepAlive(alive: boolean): void
  kill(): Promise<void>
}

const CALL_MS = 600_000
const LOAD_MS = 60_000
const READY = 0

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: ManyworldsError) => void
  readonly timer: NodeJS.Timeout
}

/** Programs without a compiler hear of it here. */
export function moduleUrl({ module }: LearnerReference): string {
  const url = String(module)
  if (URL.canParse(url)) return url
  throw new ManyworldsError(
    'LEARNER_INVALID',
    `the \`module\` of a learner must be a URL, such as new URL('./learner.ts', import.meta.url); it is '${url}'`,
  )
}

export const optionsNotPlain = (cause: unknown): ManyworldsError =>
  new ManyworldsError('LEARNER_INVALID', `\`options\` of a learner must be plain data: ${wordsOf(cause).message}`, {
    cause,
  })

/** Calls of a learner elsewhere, and their answers. Every call ends: by an answer, by its time, or with the learner. */
export class LearnerCalls implements RunningLearner {
  readonly #channel: LearnerChannel
  readonly #callMs: number
  readonly #waiting = new Map<number, Waiting>()
  #calls = READY
  /** Why it can do nothing any more. */
  #ended: ManyworldsError | undefined

  constructor(channel: LearnerChannel, { callMs = CALL_MS }: LearnerLimits) {
    this.#channel = channel
    this.#callMs = callMs
  }

  get ended(): boolean {
    return this.#ended !== undefined
  }

  async ready({ loadMs = LOAD_MS }: LearnerLimits): Promise<void> {
    const late = `has not loaded its module within ${loadMs} ms`
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
    switch (message.type) {
      case 'ready':
        return this.#take(READY)?.resolve(undefined)
      case 'unusable': {
        const { error } = message
        this.#take(READY)?.reject(received(error, 'LEARNER_INVALID', 'the learner cannot be made: '))
        this.end('could not be made')
        return void this.#channel.kill()
      }
      case 'result':
        return this.#take(message.id)?.resolve(message.value)
      case 'error':
        this.#take(message.id)?.reject(received(message.error, 'LEARNER_FAILED', ''))
        // At once: whoever hears of the error asks whether that was the end.
        if (message.ended) this.end('ended, because the process that it computes in died')
        return
      case 'ended':
        return this.end(message.how)
    }
  }

  /** It can do nothing more; the first reason counts. */
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
        // A function or a class instance that cannot be copied.
        const message = `\`${method}\` was given what cannot be sent to a ${this.#channel.kind}: ${wordsOf(error).message}`
        return reject(new ManyworldsError('ROW_INVALID', message, { cause: error }))
      }
      const late = `has not answered \`${method}\` within ${this.#callMs} ms, and was ended`
      this.#wait(id, this.#callMs, late, resolve as (value: unknown) => void, reject)
    })
  }

  #wait(id: number, ms: number, late: string, resolve: Waiting['resolve'], reject: Waiting['reject']): void {
    const timer = setTimeout(() => {
      this.end(late)
      void this.#channel.kill()
    }, ms)
    // It keeps the process alive only while a call is open.
    if (this.#waiting.size === 0) this.#channel.keepAlive(true)
    this.#waiting.set(id, { resolve, reject, timer })
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    clearTimeout(waiting?.timer)
    if (this.#waiting.delete(id) && this.#waiting.size === 0) this.#channel.keepAlive(false)
    return waiting
  }
}

/** An error of the learner, with the stack that it had there as its cause. */
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
