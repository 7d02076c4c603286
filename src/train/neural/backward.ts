import type { Jax, JaxArray } from './load-jax.ts'
import type { Mlp } from './mlp.ts'

/**
 * Batch sizes for differentiation: the largest while there are enough rows, then the rest, padded with zeros to one of
 * the smaller sizes. Each size is compiled once, which takes 0.1 s.
 */
const SIZES = [64, 256, 1024]
const MAX_ROWS = SIZES.at(-1)!

interface Layer {
  readonly matrix: JaxArray
  readonly biases: JaxArray
}
// The types of jax-js accept only trees of type aliases.
type Layers = { readonly [key in keyof Layer]: Layer[key] }[]

/**
 * Backpropagates derivatives with respect to the outputs of a network to its weights, with jax-js in float32. Rows are
 * buffered into chunks of a fixed size since the last `flush`, so the gradient is bit-identical for any micro-batches.
 */
export class Backward {
  readonly #jax: Jax
  readonly #mlp: Mlp
  readonly #differentiate: (layers: Layers, inputs: JaxArray, byOutputs: JaxArray) => Layers
  readonly #inputs: Float32Array
  readonly #byOutputs: Float32Array
  #rows = 0

  constructor(jax: Jax, mlp: Mlp) {
    const { numpy, grad, jit } = jax
    this.#jax = jax
    this.#mlp = mlp
    this.#inputs = new Float32Array(MAX_ROWS * mlp.sizes[0]!)
    this.#byOutputs = new Float32Array(MAX_ROWS * mlp.sizes.at(-1)!)
    const sum = (layers: Layers, inputs: JaxArray, byOutputs: JaxArray): JaxArray => {
      let values = inputs
      for (const [i, { matrix, biases }] of layers.entries()) {
        values = numpy.dot(values, matrix).add(biases)
        if (i < layers.length - 1) values = numpy.tanh(values)
      }
      return values.mul(byOutputs).sum()
    }
    this.#differentiate = jit(grad(sum))
  }

  /** Adds one row. The gradient of a full chunk is added to `gradient` immediately. */
  add(inputs: Float64Array, byOutputs: Float64Array, weights: Float64Array, gradient: Float64Array): void {
    this.#inputs.set(inputs, this.#rows * inputs.length)
    this.#byOutputs.set(byOutputs, this.#rows * byOutputs.length)
    this.#rows++
    if (this.#rows === MAX_ROWS) this.flush(weights, gradient)
  }

  /** Adds the gradient of the remaining rows. */
  flush(weights: Float64Array, gradient: Float64Array): void {
    if (this.#rows === 0) return
    const { sizes } = this.#mlp
    const size = SIZES.find((size) => size >= this.#rows)!
    const part = (numbers: Float32Array, width: number) => {
      numbers.fill(0, this.#rows * width, size * width)
      return this.#array(numbers.slice(0, size * width), [size, width])
    }
    const inputs = part(this.#inputs, sizes[0]!)
    const byOutputs = part(this.#byOutputs, sizes.at(-1)!)
    this.#rows = 0
    let at = 0
    const layers = sizes.slice(1).map((outputs, i) => {
      const take = (shape: number[]) => {
        const count = shape.reduce((product, length) => product * length, 1)
        const numbers = Float32Array.from(weights.subarray(at, at + count))
        at += count
        return this.#array(numbers, shape)
      }
      return { matrix: take([sizes[i]!, outputs]), biases: take([outputs]) }
    })
    at = 0
    for (const { matrix, biases } of this.#differentiate(layers, inputs, byOutputs))
      for (const numbers of [matrix.dataSync(), biases.dataSync()])
        for (let i = 0; i < numbers.length; i++, at++) gradient[at] = gradient[at]! + numbers[i]!
  }

  /** Discards rows that were not flushed. */
  drop(): void {
    this.#rows = 0
  }

  #array(numbers: Float32Array, shape: readonly number[]): JaxArray {
    return this.#jax.numpy.array(numbers).reshape(shape)
  }
}
