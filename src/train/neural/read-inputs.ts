import { ManyworldsError } from '../../errors.ts'
import type { NeuralInputs, NeuralOptions, NeuralSettings } from './settings.ts'

/** Converts observations and candidates to the input numbers of a network. Throws if they do not fit. */
export class InputReader {
  readonly #name: string
  readonly #inputs: NeuralInputs
  readonly #candidates: NeuralOptions['candidates']
  readonly #settings: NeuralSettings

  constructor(name: string, options: NeuralOptions, settings: NeuralSettings) {
    this.#name = name
    this.#inputs = options.inputs
    this.#candidates = options.candidates
    this.#settings = settings
  }

  /** Writes the inputs of an observation to the start of `to`. */
  observation(observation: unknown, to: Float64Array): void {
    const { kind, size } = this.#settings.inputs
    if (kind === 'oneHot') {
      if (!Number.isInteger(observation) || (observation as number) < 0 || (observation as number) >= size)
        this.#refuse(observation, `whole numbers from 0 to ${size - 1}`)
      to.fill(0, 0, size)
      to[observation as number] = 1
      return
    }
    if (kind === 'own') {
      const { of } = this.#inputs as Exclude<NeuralInputs, number | { oneHot: number }>
      return this.#own('inputs', of(observation), size, to, 0)
    }
    if (!isList(observation) || addNumbers(observation, to, 0, size, 0) !== size)
      this.#refuse(observation, `lists of ${size} finite numbers`)
  }

  /** Writes the numbers of a candidate to `to`, starting at `at`. */
  candidate(observation: unknown, candidate: unknown, to: Float64Array, at: number): void {
    const { size, of } = this.#candidates!
    this.#own('candidates', of(observation, candidate), size, to, at)
  }

  #own(option: string, numbers: unknown, size: number, to: Float64Array, at: number): void {
    if (isList(numbers) && addNumbers(numbers, to, at, at + size, MAX_LEVELS) === at + size) return
    throw new ManyworldsError(
      'POLICY_INVALID',
      `\`${option}.of\` of policy '${this.#name}' must return a list of ${size} finite numbers; it returned ${shown(numbers)}`,
    )
  }

  #refuse(observation: unknown, what: string): never {
    throw new ManyworldsError(
      'POLICY_INVALID',
      `policy '${this.#name}' expects observations that are ${what}, but got ${shown(observation)}; to convert others, use \`inputs: { size, of }\``,
    )
  }
}

const MAX_LEVELS = 16

const isList = (value: unknown): value is ArrayLike<unknown> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && 'length' in value)

/**
 * Writes the numbers of a nested list. Returns the index after the last one, or -1 if an element is not a finite number
 * or there are too many.
 */
function addNumbers(list: ArrayLike<unknown>, to: Float64Array, at: number, end: number, level: number): number {
  for (let i = 0; i < list.length; i++) {
    const value = list[i]
    if (typeof value === 'number' && Number.isFinite(value) && at < end) to[at++] = value
    else if (isList(value) && level < MAX_LEVELS && at >= 0) at = addNumbers(value, to, at, end, level + 1)
    else return -1
    if (at < 0) return -1
  }
  return at
}

function shown(value: unknown): string {
  try {
    const text = typeof value === 'function' ? 'a function' : (JSON.stringify(value) ?? String(value))
    const length = isList(value) ? `${value.length} elements: ` : ''
    return text.length <= 80 ? text : `${length}${text.slice(0, 80)}…`
  } catch {
    return typeof value
  }
}
