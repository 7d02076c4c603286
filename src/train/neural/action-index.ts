import { TaskError } from '../../errors.ts'
import { canonical } from '../../trajectory/canonical.ts'

/** Finds the network output of a candidate. */
export class ActionIndex {
  readonly #policy: string
  readonly #indexes = new Map<unknown, number>()

  constructor(policy: string, actions: readonly unknown[]) {
    this.#policy = policy
    for (const [index, action] of actions.entries()) this.#indexes.set(keyOf(action), index)
  }

  of(candidate: unknown): number {
    const index = this.#indexes.get(keyOf(candidate))
    if (index !== undefined) return index
    throw new TaskError(
      'ACTION_INVALID',
      `candidate ${canonical(candidate).slice(0, 80)} is not one of the ${this.#indexes.size} \`actions\` of policy '${this.#policy}'; add it to them`,
    )
  }
}

/** The prefix keeps strings and objects apart. */
const keyOf = (action: unknown): unknown =>
  typeof action === 'object' && action !== null
    ? `object ${canonical(action)}`
    : typeof action === 'string'
      ? `text ${action}`
      : action
