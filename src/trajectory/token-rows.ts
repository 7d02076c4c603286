import type { ModelStep, PolicyVersion, Step, StepTokens } from './step.ts'
import { type UntrainableCode, whyUntrainable } from './trainable.ts'

/** One sequence of tokens for a learner: prompt, completion, the text in between, the next completion, … */
export interface TokenRow {
  /** The branch of the row's last step. */
  readonly branch: number
  readonly ids: Int32Array
  /** 1: the agent's model sampled this token, and this row trains it. */
  readonly mask: Uint8Array
  /** The log-probability from the sampler where the mask is 1; otherwise 0. */
  readonly logProbs: Float64Array
  /** The positions of the completions. */
  readonly spans: readonly TokenSpan[]
}

/** The completion of a step: `ids` from `start` (inclusive) to `end` (exclusive). */
export interface TokenSpan {
  readonly step: number
  readonly start: number
  readonly end: number
  /** False: another row trains it, another role than the agent sampled it, or it may not be trained on (`refused`). */
  readonly isTrained: boolean
  readonly policy: PolicyVersion | null
  readonly temperature: number
}

export interface TokenRows {
  readonly rows: readonly TokenRow[]
  /** Steps whose tokens no row trains, and why. */
  readonly refused: readonly { readonly step: number; readonly why: string }[]
}

/** A few steps can reference a long prefix many times, so the total is limited. */
const MOST_TOKENS = 100_000_000

type TokenStep = Step & ModelStep & { readonly tokens: StepTokens }

/**
 * Builds rows of tokens with masks from a trajectory. A row follows a conversation to its end, with tokens as the sampler had
 * them: mask 1 on completions, 0 elsewhere. Conversations with a common prefix share it; each sampled token is trained only in
 * the first row that has it. A completion that may not be trained on (`trainable.ts`) is context, and is listed in `refused`;
 * without the token ids of a prompt there is no row. `allowed`: reasons that do not count, because the learner asked for such calls.
 */
export function tokenRows(
  { steps }: { readonly steps: readonly Step[] },
  { allowed = [] }: { readonly allowed?: readonly UntrainableCode[] } = {},
): TokenRows {
  const known = new Map<number, TokenStep>()
  const refused = new Map<number, string>()
  for (const step of steps)
    if (hasTokens(step)) takeStep(step, known, refused)
    else if (step.kind === 'model' && step.redacted && step.role === 'agent')
      refused.set(step.index, `step ${step.index} contained secrets, which were removed together with its tokens`)
  const trained = new Set<number>()
  const rows: TokenRow[] = []
  let total = 0
  for (const last of ends(known)) {
    const line = lineTo(last, known)
    const unknown = line.find(({ tokens }) => tokens.promptUnknown)
    if (unknown) {
      for (const { index, role } of line)
        if (role === 'agent' && !refused.has(index)) refused.set(index, said(unknown, whyUntrainable(unknown)!.why))
      continue
    }
    for (const step of line) {
      const found = step.role === 'agent' ? whyUntrainable(step, allowed) : undefined
      if (found) refused.set(step.index, said(step, found.why))
    }
    total += line.reduce((sum, { tokens }) => sum + tokens.tail.length + tokens.completion.length, 0)
    if (total > MOST_TOKENS) throw new RangeError(`the rows of this trajectory have more than ${MOST_TOKENS} tokens`)
    const row = rowOf(line, trained, refused)
    if (row.spans.some(({ isTrained }) => isTrained)) rows.push(row)
  }
  const left = [...refused].filter(([step]) => !trained.has(step))
  return { rows, refused: left.map(([step, why]) => ({ step, why })).sort((a, b) => a.step - b.step) }
}

export const hasTokens = (step: Step): step is TokenStep =>
  step.kind === 'model' && step.tokens !== null && step.redacted !== true

/** Steps that continue a missing step are refused. */
function takeStep(step: TokenStep, known: Map<number, TokenStep>, refused: Map<number, string>): void {
  const { from } = step.tokens
  if (from === null || known.has(from)) known.set(step.index, step)
  else if (step.role === 'agent')
    refused.set(step.index, `step ${step.index} continues the tokens of step ${from}, which has no tokens`)
}

/** Steps that no other step continues: the ends of rows. */
function ends(known: ReadonlyMap<number, TokenStep>): TokenStep[] {
  const continued = new Set<number | null>()
  for (const { tokens } of known.values()) continued.add(tokens.from)
  return [...known.values()].filter(({ index }) => !continued.has(index))
}

function lineTo(last: TokenStep, known: ReadonlyMap<number, TokenStep>): TokenStep[] {
  const line = [last]
  for (let { from } = last.tokens; from !== null; ) {
    const step = known.get(from)!
    line.push(step)
    from = step.tokens.from
  }
  return line.reverse()
}

const said = ({ index }: TokenStep, why: string) => `step ${index} ${why}`

/** Makes the row of a sequence of steps, and marks the steps that it trains. */
function rowOf(line: readonly TokenStep[], trained: Set<number>, refused: ReadonlyMap<number, string>): TokenRow {
  const length = line.reduce((sum, { tokens }) => sum + tokens.tail.length + tokens.completion.length, 0)
  const ids = new Int32Array(length)
  const mask = new Uint8Array(length)
  const logProbs = new Float64Array(length)
  const spans: TokenSpan[] = []
  let at = 0
  for (const { index, role, policy, tokens, sampling } of line) {
    const { tail, completion } = tokens
    ids.set(tail, at)
    const start = at + tail.length
    ids.set(completion, start)
    at = start + completion.length
    const isTrained = role === 'agent' && !trained.has(index) && !refused.has(index)
    spans.push({ step: index, start, end: at, isTrained, policy, temperature: sampling.temperature ?? Number.NaN })
    if (!isTrained) continue
    trained.add(index)
    mask.fill(1, start, at)
    logProbs.set(tokens.logProbs!, start)
  }
  return { branch: line.at(-1)!.branch ?? 0, ids, mask, logProbs, spans }
}
