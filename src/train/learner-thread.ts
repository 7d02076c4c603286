import { Worker } from 'node:worker_threads'
import type { PolicyRef } from '../agents/policy.ts'
import { ManyworldsError } from '../errors.ts'
import { wordsOf } from '../text/thrown.ts'
import type { Batch, Learner, LearnerStart, Metrics, Published } from './learner.ts'
import type { FromLearner, LearnerMethod, LearnerThreadData, SentError } from './learner-messages.ts'

/** A learner by reference: a module, the name of a function that it exports and that makes a learner, and what that is given. */
export interface LearnerReference {
  readonly module: string | URL
  readonly export: string
  /** Plain data. */
  readonly options?: unknown
}

export interface LearnerThreadOptions {
  /** How long one call may take, an update above all. The thread is ended then. Default 10 minutes. */
  readonly callMs?: number
  /** How long the module may take to load. Default one minute. */
  readonly loadMs?: number
  /** How much memory its JavaScript may take; above that, only the thread ends. Default: as Node has it. */
  readonly memoryMb?: number
}

const CALL_MS = 600_000
const LOAD_MS = 60_000

/** A learner in a thread of its own. */
export interface LearnerThread extends Learner {
  /** Ends the thread at once. Calls that are not answered, and later ones, fail with `LEARNER_FAILED`. */
  terminate(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Runs a learner in a thread of its own, so that collecting goes on while it learns. Rows are copied; groups arrive as plain data. What
 * a learner throws is thrown here, with its code or `LEARNER_FAILED`. A thread that ends by itself fails all calls: start
 * another one, with the state of the last good version.
 *
 * @example
 * const learner = await runLearnerInThread({ module: new URL('./learner.ts', import.meta.url), export: 'makeLearner' })
 */
export async function runLearnerInThread(
  { module, export: name, options }: LearnerReference,
  { callMs = CALL_MS, loadMs = LOAD_MS, memoryMb }: LearnerThreadOptions = {},
): Promise<LearnerThread> {
  const url = String(module)
  if (!URL.canParse(url))
    throw new ManyworldsError(
      'LEARNER_INVALID',
      `the \`module\` of a learner must be a URL, such as new URL('./learner.ts', import.meta.url); it is '${url}'`,
    )
  const thread = new Thread({ module: url, name, options }, callMs, memoryMb)
  await thread.ready(loadMs)
  return thread
}

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: ManyworldsError) => void
  readonly timer: NodeJS.Timeout | undefined
}

const READY = 0

class Thread implements LearnerThread {
  readonly #worker: Worker
  readonly #callMs: number
  readonly #waiting = new Map<number, Waiting>()
  #calls = READY
  /** Why it can do nothing any more. */
  #ended: ManyworldsError | undefined

  constructor(data: LearnerThreadData, callMs: number, memoryMb: number | undefined) {
    this.#callMs = callMs
    const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
    try {
      this.#worker = new Worker(new URL(`./learner-thread-main${extension}`, import.meta.url), {
        workerData: data,
        name: 'manyworlds learner',
        ...(memoryMb !== undefined && { resourceLimits: { maxOldGenerationSizeMb: memoryMb } }),
      })
    } catch (error) {
      throw new ManyworldsError(
        'LEARNER_INVALID',
        `\`options\` of a learner must be plain data: ${wordsOf(error).message}`,
        { cause: error },
      )
    }
    // It keeps the process alive only while a call is open.
    this.#worker.unref()
    this.#worker.on('message', (message: FromLearner) => this.#receive(message))
    this.#worker.on('error', (error) => this.#end(`failed: ${wordsOf(error).message}`, error))
    this.#worker.on('exit', (code) => this.#end(`ended with exit code ${code}`))
  }

  async ready(loadMs: number): Promise<void> {
    const late = `has not loaded its module within ${loadMs} ms`
    await new Promise((resolve, reject) => this.#wait(READY, loadMs, late, resolve, reject))
  }

  start = (options: LearnerStart): Promise<Published> => this.#call('start', options)
  update = (batch: Batch): Promise<Metrics> => this.#call('update', batch)
  publish = (): Promise<Published> => this.#call('publish')
  retire = (ref: PolicyRef): Promise<void> => this.#call('retire', ref)
  save = (): Promise<Uint8Array> => this.#call('save')
  load = (state: Uint8Array): Promise<void> => this.#call('load', state)

  async terminate(): Promise<void> {
    this.#end('was terminated')
    await this.#worker.terminate()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.terminate()
  }

  #call<T>(method: LearnerMethod, ...args: readonly unknown[]): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#ended) return reject(new ManyworldsError('LEARNER_FAILED', this.#ended.message, { cause: this.#ended }))
      const id = ++this.#calls
      try {
        this.#worker.postMessage({ id, method, args })
      } catch (error) {
        // A function or a class instance that cannot be copied.
        const message = `\`${method}\` was given what cannot be sent to a thread: ${wordsOf(error).message}`
        return reject(new ManyworldsError('ROW_INVALID', message, { cause: error }))
      }
      const late = `has not answered \`${method}\` within ${this.#callMs} ms, and was ended`
      this.#wait(id, this.#callMs, late, resolve as (value: unknown) => void, reject)
    })
  }

  #wait(id: number, ms: number, late: string, resolve: Waiting['resolve'], reject: Waiting['reject']): void {
    const timer = setTimeout(() => {
      this.#end(late)
      void this.#worker.terminate()
    }, ms)
    if (this.#waiting.size === 0) this.#worker.ref()
    this.#waiting.set(id, { resolve, reject, timer })
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    clearTimeout(waiting?.timer)
    if (this.#waiting.delete(id) && this.#waiting.size === 0) this.#worker.unref()
    return waiting
  }

  #receive(message: FromLearner): void {
    switch (message.type) {
      case 'ready':
        return this.#take(READY)?.resolve(undefined)
      case 'unusable': {
        const { error } = message
        this.#take(READY)?.reject(received(error, 'LEARNER_INVALID', 'the learner cannot be made: '))
        this.#end('could not be made')
        return void this.#worker.terminate()
      }
      case 'result':
        return this.#take(message.id)?.resolve(message.value)
      case 'error':
        return this.#take(message.id)?.reject(received(message.error, 'LEARNER_FAILED', ''))
    }
  }

  #end(how: string, cause?: unknown): void {
    this.#ended ??= new ManyworldsError('LEARNER_FAILED', `the thread of the learner ${how}`, { cause })
    for (const id of [...this.#waiting.keys()]) this.#take(id)!.reject(this.#ended)
  }
}

/** An error of the thread, with the stack that it had there as its cause. */
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
