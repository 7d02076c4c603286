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

/** So many sequences are scored at a time. */
const AT_ONCE = 32
const GONE: readonly (number | undefined)[] = [404, 410]

/** The model at Tinker: opened when it is needed, and anew from what was saved when its session has ended there. */
export class Remote {
  readonly #settings: TinkerSettings
  #opened: Promise<Opened> | undefined
  /** Of the one that is open, or being opened. */
  #calls: TinkerCalls | undefined
  #base: Promise<Sampling> | undefined
  /** What to begin from; undefined: from nothing. */
  #from: TinkerState | undefined
  /** The model is as it was saved or made: nothing was added since. */
  #isAsSaved = true
  #isClosed = false

  constructor(settings: TinkerSettings) {
    this.#settings = settings
  }

  /** Where the model as it is now is saved, if it is. */
  get saved(): TinkerState | undefined {
    return this.#isAsSaved ? this.#from : undefined
  }

  isSavedAs(state: TinkerState): void {
    this.#from = state
    this.#isAsSaved = true
  }

  /** An operation that adds to the gradient, or moves the weights. */
  async change<T>(operation: (model: TinkerModel) => Promise<T>): Promise<T> {
    const wasAsSaved = this.#isAsSaved
    this.#isAsSaved = false
    return this.#orAnew(wasAsSaved, operation)
  }

  async use<T>(operation: (model: TinkerModel) => Promise<T>): Promise<T> {
    return this.#orAnew(this.#isAsSaved, operation)
  }

  /** Log-probabilities of the model that the adapter is for. */
  async baseLogProbs(sequences: readonly Int32Array[]): Promise<Float64Array[]> {
    const { session } = await this.#open()
    this.#base ??= Sampling.open(session, { base_model: this.#settings.base })
    const sampling = await this.#base.catch((error: unknown) => {
      this.#base = undefined
      throw error
    })
    const found: Float64Array[] = []
    for (let at = 0; at < sequences.length; at += AT_ONCE)
      found.push(...(await Promise.all(sequences.slice(at, at + AT_ONCE).map((ids) => sampling.logProbs(ids)))))
    return found
  }

  /** A gradient that was begun cannot be taken back there: it is left behind, with its model. */
  async goBackTo(state: TinkerState): Promise<void> {
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

  async #orAnew<T>(isAsSaved: boolean, operation: (model: TinkerModel) => Promise<T>): Promise<T> {
    try {
      return await operation((await this.#open()).model)
    } catch (error) {
      const isGone = error instanceof TinkerRefusal && GONE.includes(error.status)
      // What failed in any other way may be half done: then only what was saved is known.
      if (!isGone || !isAsSaved || this.#opened === undefined) {
        this.#isAsSaved = false
        throw error
      }
    }
    this.#drop()
    return operation((await this.#open()).model)
  }

  async #open(): Promise<Opened> {
    if (this.#isClosed) throw new ManyworldsError('LEARNER_INVALID', 'this learner was closed')
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
