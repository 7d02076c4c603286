import type { WireDatum } from './tinker-wire.ts'

/**
 * The model of the scripted server: the logits of the next token are a row of one matrix for the last token, plus a row of another for the
 * first. The base has fixed numbers; what is trained is added to them, and is 0 in the beginning, as with LoRA. All in float64.
 */
export const VOCABULARY = 6
const COUNT = 2 * VOCABULARY * VOCABULARY

export interface AdamParams {
  readonly learning_rate: number
  readonly beta1: number
  readonly beta2: number
  readonly eps: number
  readonly weight_decay: number
  readonly grad_clip_norm: number
}

export interface Trained {
  readonly delta: Float64Array
  readonly mean: Float64Array
  readonly square: Float64Array
  steps: number
}

export const untrained = (): Trained => ({
  delta: new Float64Array(COUNT),
  mean: new Float64Array(COUNT),
  square: new Float64Array(COUNT),
  steps: 0,
})

export const copyOf = ({ delta, mean, square, steps }: Trained): Trained => ({
  ...{ delta: delta.slice(), mean: mean.slice(), square: square.slice(), steps },
})

const BASE = Float64Array.from({ length: COUNT }, (_, i) => Math.sin(3 * i) / 2)

/** Where the two rows of weights begin that decide about the token after this one. */
const rowsAt = (first: number, last: number) =>
  [last * VOCABULARY, VOCABULARY * VOCABULARY + first * VOCABULARY] as const

export function logProbsAfter(delta: Float64Array, first: number, last: number): number[] {
  const rows = rowsAt(first, last)
  const logits = Array.from({ length: VOCABULARY }, (_, v) =>
    rows.reduce((sum, row) => sum + BASE[row + v]! + delta[row + v]!, 0),
  )
  const top = Math.max(...logits)
  const logSum = top + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0))
  return logits.map((logit) => logit - logSum)
}

type Losses = Readonly<
  Record<
    string,
    (at: {
      logProb: number
      i: number
      of: (name: string) => number
      low: number
      high: number
    }) => [loss: number, byLogProb: number]
  >
>

/** As the documentation of Tinker has them. */
const LOSSES: Losses = {
  cross_entropy: ({ logProb, of }) => [-logProb * of('weights'), -of('weights')],
  importance_sampling: ({ logProb, of }) => {
    const loss = -Math.exp(logProb - of('logprobs')) * of('advantages')
    return [loss, loss]
  },
  ppo: ({ logProb, of, low, high }) => {
    const ratio = Math.exp(logProb - of('logprobs'))
    const plain = ratio * of('advantages')
    const clipped = Math.min(Math.max(ratio, low), high) * of('advantages')
    return plain <= clipped ? [-plain, -plain] : [-clipped, 0]
  },
  cispo: ({ logProb, of, low, high }) => {
    const ratio = Math.min(Math.max(Math.exp(logProb - of('logprobs')), low), high)
    return [-ratio * of('advantages') * logProb, -ratio * of('advantages')]
  },
}
export const LOSS_FNS: readonly string[] = Object.keys(LOSSES)

const DEFAULT_BOUNDS: Readonly<Record<string, readonly [number, number]>> = { ppo: [0.8, 1.2], cispo: [0, 4] }

export interface Passed {
  readonly loss: number
  readonly logProbs: number[][]
  readonly gradient: Float64Array
}

/** A forward pass, and the gradient of what is trained. */
export function pass(
  { delta }: Trained,
  data: readonly WireDatum[],
  lossFn: string,
  config: Readonly<Record<string, number>>,
): Passed {
  const gradient = new Float64Array(COUNT)
  const [low, high] = DEFAULT_BOUNDS[lossFn] ?? [0, 0]
  const bounds = { low: config.clip_low_threshold ?? low, high: config.clip_high_threshold ?? high }
  let loss = 0
  const logProbs = data.map(({ tokens, inputs }) =>
    tokens.map((last, i) => {
      const target = inputs.target_tokens![i]!
      const all = logProbsAfter(delta, tokens[0]!, last)
      const of = (name: string) => inputs[name]![i]!
      const [value, slope] = LOSSES[lossFn]!({ logProb: all[target]!, i, of, ...bounds })
      loss += value
      for (const row of rowsAt(tokens[0]!, last))
        for (let v = 0; v < VOCABULARY; v++)
          gradient[row + v] = gradient[row + v]! + slope * ((v === target ? 1 : 0) - Math.exp(all[v]!))
      return all[target]!
    }),
  )
  return { loss, logProbs, gradient }
}

/** AdamW, as PyTorch has it. Returns the length of the gradient. */
export function adamStep(trained: Trained, gradient: Float64Array, params: AdamParams): number {
  const { learning_rate: lr, beta1, beta2, eps, weight_decay, grad_clip_norm } = params
  const norm = Math.hypot(...gradient)
  const scale = grad_clip_norm > 0 && norm > grad_clip_norm ? grad_clip_norm / norm : 1
  const t = ++trained.steps
  for (let i = 0; i < gradient.length; i++) {
    const g = gradient[i]! * scale
    const m = (trained.mean[i] = beta1 * trained.mean[i]! + (1 - beta1) * g)
    const v = (trained.square[i] = beta2 * trained.square[i]! + (1 - beta2) * g * g)
    const step = m / (1 - beta1 ** t) / (Math.sqrt(v / (1 - beta2 ** t)) + eps)
    trained.delta[i] = trained.delta[i]! * (1 - lr * weight_decay) - lr * step
  }
  return norm
}
