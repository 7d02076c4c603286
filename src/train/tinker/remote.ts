import { ManyworldsError } from '../../errors.ts'
import { TinkerRefusal } from './call-errors.ts'
import { TinkerCalls } from './calls.ts'
import type { TinkerState } from './checkpoint.ts'
import { TinkerModel } from './model.ts'
import { Sampling } from './sampler.ts'
import { TinkerSession } from './session.ts'
import type { TinkerSettings } from './settings.ts'

interface Opened {
  readonly session: TinkerSession
  readonly model: TinkerModel
}

/** How many sequences are scored at a time. */
const CONCURRENT_SEQUENCES = 32
const GONE: readonly (number | undefined)[] = [404, 410]

/** The model at Tinker. It is opened when needed, and reopened from the last checkpoint if its session has ended. */
export class Remote {
  readonly #settings: TinkerSettings
  #opened: Promise<Opened> | undefined
  /** The connection of the open model, or of the one being opened. */
  #calls: TinkerCalls | undefined
  #base: Promise<Sampling> | undefined
  /** The checkpoint to start from; undefined: untrained. */
  #from: TinkerState | undefined
  /** The model is unchanged since it was saved or created. */
  #isAsSaved = true
  #isClosed = false

  constructor(settings: TinkerSettings) {
    this.#settings = settings
  }

  /** The checkpoint of the current model, if it is unchanged since then. */
  get saved(): TinkerState | undefined {
    return this.#isAsSaved ? this.#from : undefined
  }

  isSavedAs(state: TinkerState): void {
    this.#from = state
    this.#isAsSaved = true
  }

  /** Runs an operation that adds to the gradient or changes the weights. */
  async change<T>(operation: (model: TinkerModel) => Promise<T>): Promise<T> {
    const wasAsSaved = this.#isAsSaved
    this.#isAsSaved = false
    return this.#reopenIfGone(wasAsSaved, operation)
  }

  async use<T>(operation: (model: TinkerModel) => Promise<T>): Promise<T> {
    return this.#reopenIfGone(this.#isAsSaved, operation)
  }

  /** Log-probabilities of the base model. */
  async baseLogProbs(sequences: readonly Int32Array[]): Promise<Float64Array[]> {
    const { session } = await this.#open()
    this.#base ??= Sampling.open(session, { base_model: this.#settings.base })
    const sampling = await this.#base.catch((error: unknown) => {
      this.#base = undefined
      throw error
    })
    const found: Float64Array[] = []
    for (let at = 0; at < sequences.length; at += CONCURRENT_SEQUENCES)
      found.push(
        ...(await Promise.all(sequences.slice(at, at + CONCURRENT_SEQUENCES).map((ids) => sampling.logProbs(ids)))),
      )
    return found
  }

  /** Restores a checkpoint. An accumulated gradient cannot be cleared at Tinker, so the model is abandoned. */
  async restore(state: TinkerState): Promise<void> {
    const wasOpen = this.#opened !== undefined
    if (wasOpen && this.saved?.path === state.path) return
    this.#drop()
    this.isSavedAs(state)
    if (!wasOpen) await this.#open()
  }

  close(): void {
    this.#isClosed = true
    this.#drop()
  }

  async #reopenIfGone<T>(isAsSaved: boolean, operation: (model: TinkerModel) => Promise<T>): Promise<T> {
    try {
      return await operation((await this.#open()).model)
    } catch (error) {
      const isGone = error instanceof TinkerRefusal && GONE.includes(error.status)
      // After any other failure, the operation may be half done, so only the checkpoint is known to be good.
      if (!isGone || !isAsSaved || this.#opened === undefined) {
        this.#isAsSaved = false
        throw error
      }
    }
    this.#drop()
    return operation((await this.#open()).model)
  }

  async #open(): Promise<Opened> {
    if (this.#isClosed) throw new ManyworldsError('LEARNER_INVALID', 'the learner is closed')
    if (this.#opened !== undefined) return this.#opened
    const opening = this.#make()
    this.#opened = opening
    try {
      return await opening
    } catch (error) {
      if (this.#opened === opening) this.#opened = undefined
      throw error
    }
  }

  async #make(): Promise<Opened> {
    const calls = new TinkerCalls(this.#settings)
    this.#calls = calls
    try {
      const session = await TinkerSession.open(calls, this.#settings.name)
      const from = this.#from
      const model = await (from === undefined
        ? TinkerModel.create(session, this.#settings)
        : TinkerModel.from(session, this.#settings, from.path))
      return { session, model }
    } catch (error) {
      calls.close()
      throw error
    }
  }

  #drop(): void {
    this.#calls?.close()
    this.#opened = undefined
    this.#base = undefined
  }
}
