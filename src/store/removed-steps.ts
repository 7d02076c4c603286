import { ManyworldsError } from '../errors.ts'
import type { StepSource } from '../response.ts'
import type { Step } from '../trajectory/step.ts'

/** Stands for steps that were removed to save space. Reading them throws instead of returning an empty list. */
export class RemovedSteps implements StepSource {
  readonly #count: number
  readonly #path: string

  constructor(count: number, path: string) {
    this.#count = count
    this.#path = path
  }

  read(): readonly Step[] {
    throw this.#gone()
  }

  stream(): AsyncIterable<Step> {
    throw this.#gone()
  }

  #gone(): ManyworldsError {
    return new ManyworldsError(
      'STORE_GONE',
      `the ${this.#count} steps of this response were removed from ${this.#path} to save space, as configured for its training. The outcome is still stored; check \`removedSteps\` before reading the trajectory`,
    )
  }
}
