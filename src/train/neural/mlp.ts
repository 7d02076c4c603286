import { randomFrom } from '../../random.ts'
import { tanh } from '../exact-math.ts'
import { countWeights } from './settings.ts'

/**
 * A multilayer perceptron with tanh in all layers but the last, in plain float64: the same numbers on every machine,
 * without calling another runtime for each step of an episode. Weights: for each layer its matrix, one row per input,
 * then its biases.
 */
export class Mlp {
  readonly sizes: readonly number[]
  readonly weightCount: number
  /** The outputs of each layer; the last is the result. */
  readonly #layers: readonly Float64Array[]

  constructor(sizes: readonly number[]) {
    this.sizes = sizes
    this.weightCount = countWeights(sizes)
    this.#layers = sizes.slice(1).map((size) => new Float64Array(size))
  }

  /** The outputs, which are valid until the next call. */
  forward(weights: Float64Array, inputs: Float64Array): Float64Array {
    let from = inputs
    let at = 0
    for (let layer = 0; layer < this.#layers.length; layer++) {
      const to = this.#layers[layer]!
      const end = at + from.length * to.length
      for (let j = 0; j < to.length; j++) to[j] = weights[end + j]!
      addProducts(from, weights, at, to)
      if (layer < this.#layers.length - 1) for (let j = 0; j < to.length; j++) to[j] = tanh(to[j]!)
      at = end + to.length
      from = to
    }
    return from
  }

  /**
   * Draws initial weights that preserve the scale of signals. Those of the last layer are 0, so an untrained policy
   * gives all actions the same probability, and all values are 0.
   */
  draw(weights: Float64Array, seed: number | string, stream: string): void {
    const random = randomFrom({ seed, purpose: 'policy', stream, task: '', visit: 0, rollout: 1 })
    let at = 0
    for (let layer = 1; layer < this.sizes.length - 1; layer++) {
      const [inputs, outputs] = [this.sizes[layer - 1]!, this.sizes[layer]!]
      const limit = Math.sqrt(3 / inputs)
      for (let i = 0; i < inputs * outputs; i++) weights[at + i] = (2 * random() - 1) * limit
      at += (inputs + 1) * outputs
    }
  }
}

/**
 * Adds the inputs times their rows of a matrix, in the order of the inputs. Four at a time, which accesses the sums
 * less often but adds in the same order.
 */
function addProducts(inputs: Float64Array, matrix: Float64Array, at: number, sums: Float64Array): void {
  const { length } = sums
  let i = 0
  for (; i + 3 < inputs.length; i += 4, at += 4 * length) {
    const [a, b, c, d] = [inputs[i]!, inputs[i + 1]!, inputs[i + 2]!, inputs[i + 3]!]
    // Most inputs of a one-hot layer are 0.
    if (a === 0 && b === 0 && c === 0 && d === 0) continue
    const [second, third, fourth] = [at + length, at + 2 * length, at + 3 * length]
    for (let j = 0; j < length; j++)
      sums[j] =
        sums[j]! + a * matrix[at + j]! + b * matrix[second + j]! + c * matrix[third + j]! + d * matrix[fourth + j]!
  }
  for (; i < inputs.length; i++, at += length)
    for (let j = 0; j < length; j++) sums[j] = sums[j]! + inputs[i]! * matrix[at + j]!
}
