import { ManyworldsError } from '../../errors.ts'
import { canonical } from '../../trajectory/canonical.ts'

/**
 * How an observation becomes numbers:
 * - `4`: it is a list of 4 numbers, nested or not, such as an observation of a `Box` of Gymnasium.
 * - `{ oneHot: 16 }`: it is a whole number from 0 to 15, such as one of `Discrete(16)`. Each number has an input of its own.
 * - `{ size, of }`: a function makes `size` numbers of it.
 */
export type NeuralInputs<Observation = unknown> =
  | number
  | { readonly oneHot: number }
  | { readonly size: number; readonly of: (observation: Observation) => ArrayLike<number> }

/** What a neural policy is made of. Nothing of it may change between acting and learning. */
export interface NeuralOptions<Observation = unknown, Action = unknown> {
  /** Default `neural`. */
  readonly name?: string
  readonly inputs: NeuralInputs<Observation>
  /** All actions there are: the network has one output for each. What is not among the candidates of a step is not chosen. */
  readonly actions?: readonly Action[]
  /** Instead of `actions`: `size` numbers of a candidate. The network scores each candidate by the observation and these. */
  readonly candidates?: {
    readonly size: number
    readonly of: (observation: Observation, candidate: Action) => ArrayLike<number>
  }
  /** The sizes of the hidden layers, which are tanh. Default `[64, 64]`. */
  readonly hidden?: readonly number[]
  /** A second network of the same size that foretells the return. Default true. */
  readonly value?: boolean
  /** Of the weights that it begins with. Default 1. */
  readonly seed?: number | string
}

/** What weights fit, and what is stored with them. Plain JSON. */
export interface NeuralSettings {
  readonly inputs: { readonly kind: 'numbers' | 'oneHot' | 'own'; readonly size: number }
  /** Null: candidates have numbers of their own. */
  readonly actions: readonly unknown[] | null
  /** How many numbers a candidate has; 0 with a list of actions. */
  readonly candidate: number
  readonly hidden: readonly number[]
  readonly hasValue: boolean
}

const MOST_INPUTS = 1_000_000
const MOST_WEIGHTS = 100_000_000

/** Checks options once, with one clear error. */
export function neuralSettings(options: NeuralOptions): NeuralSettings {
  const { name = 'neural', inputs, actions, candidates, hidden = [64, 64], value = true, seed = 1 } = options
  if (typeof name !== 'string' || name === '')
    refuse(`\`name\` must be a text that is not empty, it is ${String(name)}`)
  if ((actions === undefined) === (candidates === undefined))
    refuse('give either `actions`, the list of all actions, or `candidates`, a function that makes numbers of one')
  if (actions !== undefined) checkActions(actions)
  if (candidates !== undefined && (!isSize(candidates?.size) || typeof candidates.of !== 'function'))
    refuse('`candidates` must be { size, of }: a function of the observation and a candidate that makes `size` numbers')
  if (!Array.isArray(hidden) || !hidden.every(isSize))
    refuse(`\`hidden\` must be a list of whole numbers above 0, such as [64, 64]; it is ${JSON.stringify(hidden)}`)
  if (typeof value !== 'boolean') refuse('`value` must be true or false')
  if (typeof seed !== 'string' && !Number.isFinite(seed)) refuse('`seed` must be a number or a text')
  const settings: NeuralSettings = {
    inputs: inputsOf(inputs),
    actions: actions ?? null,
    candidate: candidates?.size ?? 0,
    hidden,
    hasValue: value,
  }
  const count = networkSizes(settings).reduce((sum, sizes) => sum + countWeights(sizes), 0)
  if (count > MOST_WEIGHTS) refuse(`the network has ${count} weights; there may be ${MOST_WEIGHTS}`)
  return settings
}

/** The layers of the network of the policy and, if it has one, that of the value. */
export function networkSizes({ inputs, actions, candidate, hidden, hasValue }: NeuralSettings): readonly number[][] {
  const policy = [inputs.size + candidate, ...hidden, actions?.length ?? 1]
  return hasValue ? [policy, [inputs.size, ...hidden, 1]] : [policy]
}

/** Of a network of layers: for each a matrix, and a bias for each output. */
export function countWeights(sizes: readonly number[]): number {
  let count = 0
  for (let i = 1; i < sizes.length; i++) count += (sizes[i - 1]! + 1) * sizes[i]!
  return count
}

function inputsOf(inputs: NeuralInputs): NeuralSettings['inputs'] {
  if (typeof inputs === 'number' && isSize(inputs)) return { kind: 'numbers', size: inputs }
  if (typeof inputs === 'object' && inputs !== null) {
    if ('oneHot' in inputs && isSize(inputs.oneHot)) return { kind: 'oneHot', size: inputs.oneHot }
    if ('size' in inputs && isSize(inputs.size) && typeof inputs.of === 'function')
      return { kind: 'own', size: inputs.size }
  }
  return refuse(
    '`inputs` must be how many numbers an observation has (4), { oneHot: 16 } for whole numbers from 0 to 15, or { size, of } with a function that makes `size` numbers of an observation',
  )
}

function checkActions(actions: readonly unknown[]): void {
  if (!Array.isArray(actions) || actions.length === 0) refuse('`actions` must be a list of at least one action')
  const seen = new Set<string>()
  for (const action of actions) {
    const text = canonical(action)
    if (!isJson(action, text))
      refuse(`\`actions\` must be plain JSON, because they are stored with the weights; one is ${text.slice(0, 60)}`)
    if (seen.has(text)) refuse(`\`actions\` has ${text.slice(0, 60)} twice`)
    seen.add(text)
  }
}

function isJson(value: unknown, text: string): boolean {
  try {
    return canonical(JSON.parse(JSON.stringify(value))) === text
  } catch {
    return false
  }
}

const isSize = (size: unknown): size is number =>
  Number.isInteger(size) && (size as number) > 0 && (size as number) <= MOST_INPUTS

function refuse(problem: string): never {
  throw new ManyworldsError('POLICY_INVALID', `neuralPolicy: ${problem}`)
}
