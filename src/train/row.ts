import { ManyworldsError } from '../errors.ts'

/** One decision to train on. */
export interface ActionRow {
  readonly kind: 'action'
  readonly observation: unknown
  readonly candidates: readonly unknown[]
  readonly action: unknown
  /** The index of the action among the candidates. */
  readonly index: number
  /** The log-probability under the policy that acted. */
  readonly behavior: number
  /** The log-probability under the learner at the start of the update. Default: `behavior`. */
  readonly proximal?: number
  readonly advantage: number
  /** The target of the value head. */
  readonly return?: number
  /** The weight of this row in the loss. It includes the normalizer, so micro-batches do not affect it. */
  readonly weight: number
  /** The version of the policy that acted. */
  readonly version: number
}

/** A sequence of tokens, some of which are trained on. */
export interface TokenRow {
  readonly kind: 'tokens'
  readonly ids: Int32Array
  /** 1: sampled by the policy, and trained on. */
  readonly mask: Uint8Array
  readonly behavior: Float64Array
  readonly proximal?: Float64Array
  readonly advantage: Float64Array
  readonly weight: Float64Array
  readonly temperature: number
  readonly version: number
}

/** What a learner trains on. */
export type Row = ActionRow | TokenRow

/** Throws on numbers that would corrupt the weights, before computing with them. */
export function checkRows(rows: readonly Row[]): void {
  for (const [at, row] of rows.entries()) {
    const wrong = row.kind === 'action' ? wrongInAction(row) : wrongInTokens(row)
    if (wrong !== undefined) throw new ManyworldsError('ROW_INVALID', `row ${at} of the batch: ${wrong}`)
  }
}

/** Because of rounding, a log-probability of 0 may be slightly above 0. */
const LOG_PROB_SLACK = 1e-9

function wrongInAction(row: ActionRow): string | undefined {
  for (const name of ['behavior', 'proximal', 'advantage', 'return', 'weight'] as const) {
    const value = row[name]
    if (value === undefined && (name === 'proximal' || name === 'return')) continue
    if (!Number.isFinite(value)) return `\`${name}\` must be a finite number, it is ${String(value)}`
  }
  if (row.weight < 0) return `\`weight\` must not be negative, it is ${row.weight}`
  if (row.behavior > LOG_PROB_SLACK) return `\`behavior\` must be a log-probability, at most 0; it is ${row.behavior}`
  if (!Array.isArray(row.candidates) || !Number.isInteger(row.index) || !(row.index in row.candidates))
    return `\`index\` ${row.index} is not the index of one of its ${row.candidates?.length ?? 0} candidates`
  return undefined
}

function wrongInTokens(row: TokenRow): string | undefined {
  const { length } = row.ids
  for (const name of ['mask', 'behavior', 'proximal', 'advantage', 'weight'] as const) {
    const values = row[name]
    if (values === undefined && name === 'proximal') continue
    if (values?.length !== length)
      return `\`${name}\` has ${values?.length ?? 'no'} numbers, but there are ${length} \`ids\``
    // Numbers at tokens that are not trained on are ignored.
    const at = name === 'mask' ? -1 : values.findIndex((value, i) => row.mask[i] === 1 && !Number.isFinite(value))
    if (at !== -1) return `\`${name}\` must be finite numbers, number ${at} is ${values[at]}`
  }
  return row.temperature > 0 ? undefined : `\`temperature\` must be above 0, it is ${row.temperature}`
}
