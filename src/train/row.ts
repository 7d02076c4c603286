import { ManyworldsError } from '../errors.ts'

/** One decision that is trained. */
export interface ActionRow {
  readonly kind: 'action'
  readonly observation: unknown
  readonly candidates: readonly unknown[]
  readonly action: unknown
  /** The place of the action among the candidates. */
  readonly index: number
  /** Log-probability of the policy that acted. */
  readonly behaviour: number
  /** Log-probability of the learner at the start of the update; left out: as `behaviour`. */
  readonly proximal?: number
  readonly advantage: number
  /** What the value head should have said. */
  readonly return?: number
  /** Of this row in the loss. The normalizer is in here, so micro-batches cannot change it. */
  readonly weight: number
  /** Of the policy that acted. */
  readonly version: number
}

/** A sequence of tokens of which some are trained. */
export interface TokenRow {
  readonly kind: 'tokens'
  readonly ids: Int32Array
  /** 1: sampled by the policy, and trained. */
  readonly mask: Uint8Array
  readonly behaviour: Float64Array
  readonly proximal?: Float64Array
  readonly advantage: Float64Array
  readonly weight: Float64Array
  readonly temperature: number
  readonly version: number
}

/** What a learner trains on. */
export type Row = ActionRow | TokenRow

/** Refuses numbers that would spoil the weights, before anything is computed with them. */
export function checkRows(rows: readonly Row[]): void {
  for (const [at, row] of rows.entries()) {
    const wrong = row.kind === 'action' ? wrongInAction(row) : wrongInTokens(row)
    if (wrong !== undefined) throw new ManyworldsError('ROW_INVALID', `row ${at} of the batch: ${wrong}`)
  }
}

/** Rounding may bring a log-probability of 0 a little above it. */
const LOG_PROB_SLACK = 1e-9

function wrongInAction(row: ActionRow): string | undefined {
  for (const name of ['behaviour', 'proximal', 'advantage', 'return', 'weight'] as const) {
    const value = row[name]
    if (value === undefined && (name === 'proximal' || name === 'return')) continue
    if (!Number.isFinite(value)) return `\`${name}\` must be a finite number, it is ${String(value)}`
  }
  if (row.weight < 0) return `\`weight\` must not be negative, it is ${row.weight}`
  if (row.behaviour > LOG_PROB_SLACK)
    return `\`behaviour\` is the logarithm of a probability, at most 0; it is ${row.behaviour}`
  if (!Array.isArray(row.candidates) || !Number.isInteger(row.index) || !(row.index in row.candidates))
    return `\`index\` ${row.index} is not the place of one of its ${row.candidates?.length ?? 0} candidates`
  return undefined
}

function wrongInTokens(row: TokenRow): string | undefined {
  const { length } = row.ids
  for (const name of ['mask', 'behaviour', 'proximal', 'advantage', 'weight'] as const) {
    const values = row[name]
    if (values === undefined && name === 'proximal') continue
    if (values?.length !== length)
      return `\`${name}\` has ${values?.length ?? 'no'} numbers, and there are ${length} \`ids\``
    // What is not trained may be anything.
    const at = name === 'mask' ? -1 : values.findIndex((value, i) => row.mask[i] === 1 && !Number.isFinite(value))
    if (at !== -1) return `\`${name}\` must be finite numbers, number ${at} is ${values[at]}`
  }
  return row.temperature > 0 ? undefined : `\`temperature\` must be above 0, it is ${row.temperature}`
}
