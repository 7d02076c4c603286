import { ManyworldsError } from '../errors.ts'
import type { ByteReader, ByteWriter } from './bytes.ts'
import { clipScale, gradientNorm } from './gradient-norm.ts'
import type { Metrics } from './learner.ts'

const BETA_1 = 0.9
const BETA_2 = 0.999
const EPSILON = 1e-8

/**
 * Adam with bias correction, in float64. The norm is summed in the order of the weights, so that it is reproducible.
 */
export class Adam {
  #mean: Float64Array
  #square: Float64Array
  // Running products, because Math.pow may differ between machines.
  #power1 = 1
  #power2 = 1

  constructor(count: number) {
    this.#mean = new Float64Array(count)
    this.#square = new Float64Array(count)
  }

  /**
   * Updates the weights and clears the gradient. Throws, without changing any weight, if the gradient is not finite.
   */
  step(
    weights: Float64Array,
    gradient: Float64Array,
    { lr, clipNorm = Infinity }: { readonly lr: number; readonly clipNorm?: number },
  ): Metrics {
    const norm = gradientNorm([gradient])
    if (!Number.isFinite(norm)) {
      gradient.fill(0)
      throw new ManyworldsError(
        'LEARNER_FAILED',
        `the gradient norm is ${norm}, not a finite number; the weights were not changed`,
      )
    }
    const scale = clipScale(norm, clipNorm)
    const correction1 = 1 - (this.#power1 *= BETA_1)
    const correction2 = 1 - (this.#power2 *= BETA_2)
    const mean = this.#mean
    const square = this.#square
    for (let i = 0; i < weights.length; i++) {
      const g = gradient[i]! * scale
      // Most weights belong to features that never occurred.
      if (g === 0 && square[i] === 0) continue
      const m = (mean[i] = BETA_1 * mean[i]! + (1 - BETA_1) * g)
      const v = (square[i] = BETA_2 * square[i]! + (1 - BETA_2) * g * g)
      weights[i] = weights[i]! - (lr * (m / correction1)) / (Math.sqrt(v / correction2) + EPSILON)
    }
    gradient.fill(0)
    const wrong = weights.findIndex((weight) => !Number.isFinite(weight))
    if (wrong !== -1)
      throw new ManyworldsError(
        'LEARNER_FAILED',
        `weight ${wrong} is ${weights[wrong]} after an optimizer step with lr ${lr}; lower \`lr\``,
      )
    return { gradientNorm: norm, gradientScale: scale }
  }

  write(out: ByteWriter): void {
    out.f64(this.#power1)
    out.f64(this.#power2)
    out.vector(this.#mean)
    out.vector(this.#square)
  }

  static read(reader: ByteReader, count: number): Adam {
    const adam = new Adam(0)
    adam.#power1 = reader.f64()
    adam.#power2 = reader.f64()
    adam.#mean = reader.vector(count)
    adam.#square = reader.vector(count)
    return adam
  }
}
