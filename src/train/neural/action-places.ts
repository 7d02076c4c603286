import { TaskError } from '../../errors.ts'
import { canonical } from '../../trajectory/canonical.ts'

/** Finds the output of the network that belongs to a candidate. */
export class ActionPlaces {
  readonly #policy: string
  readonly #places = new Map<unknown, number>()

  constructor(policy: string, actions: readonly unknown[]) {
    this.#policy = policy
    for (const [place, action] of actions.entries()) this.#places.set(keyOf(action), place)
  }

  of(candidate: unknown): number {
    const place = this.#places.get(keyOf(candidate))
    if (place !== undefined) return place
    throw new TaskError(
      'ACTION_INVALID',
      `the candidate ${canonical(candidate).slice(0, 80)} is none of the ${this.#places.size} \`actions\` of policy '${this.#policy}'`,
    )
  }
}

/** Texts have a key that no object has. */
const keyOf = (action: unknown): unknown =>
  typeof action === 'object' && action !== null
    ? `object ${canonical(action)}`
    : typeof action === 'string'
      ? `text ${action}`
      : action
