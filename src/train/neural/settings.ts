import { ManyworldsError } from '../../errors.ts'
import { canonical } from '../../trajectory/canonical.ts'

/**
 * How an observation is converted to numbers:
 * - `4`: it is a list of 4 numbers, nested or not, such as an observation of a Gymnasium `Box`.
 * - `{ oneHot: 16 }`: it is a whole number from 0 to 15, such as an observation of `Discrete(16)`, and is encoded one-hot.
 * - `{ size, of }`: a function returns `size` numbers for it.
 */
export type NeuralInputs<Observation = unknown> =
  | number
  | { readonly oneHot: number }
  | { readonly size: number; readonly of: (observation: Observation) => ArrayLike<number> }

/** Options of a neural policy. They must be the same for acting and training. */
export interface NeuralOptions<Observation = unknown, Action = unknown> {
  /** Default `neural`. */
  readonly name?: string
  readonly inputs: NeuralInputs<Observation>
  /**
   * All possible actions: the network has one output for each. Only actions among the candidates of a step are chosen.
   */
  readonly actions?: readonly Action[]
  /**
   * Instead of `actions`: a function that returns `size` numbers for a candidate. The network scores each candidate by
   * the observation and these numbers.
   */
  readonly candidates?: {
    readonly size: number
    readonly of: (observation: Observation, candidate: Action) => ArrayLike<number>
  }
  /** The sizes of the hidden layers, which use tanh. Default `[64, 64]`. */
  readonly hidden?: readonly number[]
  /** Add a second network of the same size that predicts the return. Default true. */
  readonly value?: boolean
  /** The seed of the initial weights. Default 1. */
  readonly seed?: number | string
}

/** The settings that weights must match; stored with them. Plain JSON. */
export interface NeuralSettings {
  readonly inputs: { readonly kind: 'numbers' | 'oneHot' | 'own'; readonly size: number }
  /** Null: candidates are encoded by a function. */
  readonly actions: readonly unknown[] | null
  /** The number of inputs per candidate; 0 with a list of actions. */
  readonly candidate: number
  readonly hidden: readonly number[]
  readonly hasValue: boolean
}

const MAX_INPUTS = 1_000_000
const MAX_WEIGHTS = 100_000_000

/** Validates options. */
export function neuralSettings(options: NeuralOptions): NeuralSettings {
  const { name = 'neural', inputs, actions, candidates, hidden = [64, 64], value = true, seed = 1 } = options
  if (typeof name !== 'string' || name === '') refuse(`\`name\` must be a non-empty string, it is ${String(name)}`)
  if ((actions === undefined) === (candidates === undefined))
    refuse(
      'give either `actions`, the list of all actions, or `candidates`, { size, of } with a function that encodes a candidate',
    )
  if (actions !== undefined) checkActions(actions)
  if (candidates !== undefined && (!isSize(candidates?.size) || typeof candidates.of !== 'function'))
    refuse(
      '`candidates` must be { size, of }, where `of` is a function of the observation and a candidate that returns `size` numbers',
    )
  if (!Array.isArray(hidden) || !hidden.every(isSize))
    refuse(`\`hidden\` must be a list of whole numbers above 0, such as [64, 64]; it is ${JSON.stringify(hidden)}`)
  if (typeof value !== 'boolean') refuse('`value` must be true or false')
  if (typeof seed !== 'string' && !Number.isFinite(seed)) refuse('`seed` must be a number or a string')
  const settings: NeuralSettings = {
    inputs: inputsOf(inputs),
    actions: actions ?? null,
    candidate: candidates?.size ?? 0,
    hidden,
    hasValue: value,
  }
  const count = networkSizes(settings).reduce((sum, sizes) => sum + countWeights(sizes), 0)
  if (count > MAX_WEIGHTS)
    refuse(`the network has ${count} weights, but at most ${MAX_WEIGHTS} are allowed; use smaller \`hidden\` layers`)
  return settings
}

/** The layer sizes of the policy network and, if there is one, of the value network. */
export function networkSizes({ inputs, actions, candidate, hidden, hasValue }: NeuralSettings): readonly number[][] {
  const policy = [inputs.size + candidate, ...hidden, actions?.length ?? 1]
  return hasValue ? [policy, [inputs.size, ...hidden, 1]] : [policy]
}

/** The number of weights of a network: for each layer a matrix, and a bias per output. */
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
    '`inputs` must be the number of numbers in an observation (4), { oneHot: 16 } for whole numbers from 0 to 15, or { size, of } with a function that returns `size` numbers for an observation',
  )
}

function checkActions(actions: readonly unknown[]): void {
  if (!Array.isArray(actions) || actions.length === 0) refuse('`actions` must be a list of at least one action')
  const seen = new Set<string>()
  for (const action of actions) {
    const text = canonical(action)
    if (!isJson(action, text))
      refuse(`\`actions\` must be plain JSON, because they are stored with the weights; one is ${text.slice(0, 60)}`)
    if (seen.has(text)) refuse(`\`actions\` contains ${text.slice(0, 60)} twice`)
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
  Number.isInteger(size) && (size as number) > 0 && (size as number) <= MAX_INPUTS

function refuse(problem: string): never {
  throw new ManyworldsError('POLICY_INVALID', `neuralPolicy: ${problem}`)
}
