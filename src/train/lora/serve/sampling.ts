import { Batcher, type Sent } from './batcher.ts'
import { type Engine, isInvalid, SidecarLost } from './engine.ts'
import { Refusal, refuse } from './refusal.ts'
import type { Asked, Prompt, Sampling } from './request.ts'

/** How many steps other requests wait before they may join: a step takes 0.2 to 0.5 s with a 135M model on one core. */
const STEPS_PER_TURN = 4
const MAX_REQUESTS = 4096
/** The name of the base model, and of its lane. */
export const BASE = 'base'

export interface Sampled {
  readonly promptIds: Int32Array
  readonly prefixUsed: boolean
  readonly ids: Int32Array
  readonly logProbs: Float64Array
  readonly finish: 'stop' | 'length'
  /**
   * Whether top_p, top_k or min_p removed tokens; then the log-probabilities are not those of the full distribution.
   */
  readonly truncated: boolean
  readonly text: string
  readonly pieces: ReadonlyMap<number, string>
}

interface Prepared {
  readonly promptIds: Int32Array
  readonly prefixUsed: boolean
  readonly sampling: Sampling
}

type Completed = Omit<Sampled, 'promptIds' | 'prefixUsed'>

interface SampleAnswer {
  readonly ids: readonly number[]
  readonly lengths: readonly number[]
  readonly finish: readonly ('stop' | 'length')[]
  readonly truncated: readonly boolean[]
  readonly texts?: readonly string[]
  readonly pieces?: Readonly<Record<string, string>>
}

/** Samples validated requests, many at a time. */
export class Samples {
  readonly #engine: Engine
  readonly #batcher: Batcher<Prepared, Completed>

  constructor(engine: Engine) {
    this.#engine = engine
    this.#batcher = new Batcher({
      advance: (lane, added, dropped) => this.#advance(lane, added, dropped),
      isFatal: (error) => error instanceof SidecarLost,
      maxRequests: MAX_REQUESTS,
    })
  }

  async ask(asked: Asked, signal: AbortSignal): Promise<Sampled> {
    const lane = this.#laneOf(asked.model)
    let prepared: Prepared | undefined
    const prepare = async () => (prepared = await this.#prepare(asked))
    const completed = await this.#batcher.ask(lane, prepare, signal)
    return { ...completed, promptIds: prepared!.promptIds, prefixUsed: prepared!.prefixUsed }
  }

  /** Rejects the requests for a model that was replaced or unloaded. */
  fail(model: string, why: string): void {
    if (this.#engine.adapters.get(model)) this.#batcher.fail(new Refusal(503, why), model)
  }

  failAll(why: string): void {
    this.#batcher.fail(new Refusal(503, why))
  }

  #laneOf(model: string): string {
    const { adapters } = this.#engine
    if (model === BASE || adapters.get(model) === null) return BASE
    if (adapters.has(model)) return model
    const known = [BASE, ...adapters.keys()].join(', ')
    throw new Refusal(404, `model ${JSON.stringify(model)} not found; loaded: ${known}`)
  }

  async #prepare({ prompt, sampling }: Asked): Promise<Prepared> {
    const { ids, prefixUsed } = await this.#idsOf(prompt)
    const { context, vocabulary } = this.#engine.info
    if (ids.length === 0) refuse('the prompt is empty')
    if (ids.length >= context)
      throw new Refusal(
        400,
        `the prompt has ${ids.length} tokens, but the context of the model has only ${context}`,
        'exceed_context_size_error',
      )
    if (ids.some((id) => id >= vocabulary))
      refuse(`the prompt contains a token id outside of the vocabulary of ${vocabulary} tokens`)
    return { promptIds: ids, prefixUsed, sampling }
  }

  async #idsOf(prompt: Prompt): Promise<{ ids: Int32Array; prefixUsed: boolean }> {
    if (prompt.kind === 'ids') return { ids: Int32Array.from(prompt.ids), prefixUsed: false }
    try {
      if (prompt.kind === 'text') {
        const { parts } = await this.#engine.call('encode', { texts: [prompt.text] })
        return { ids: int32sOf(parts[0]!), prefixUsed: false }
      }
      const { messages, tools, continueFinal, prefix } = prompt
      const known = prefix && { messages: prefix.messages, last: prefix.tokenIds.at(-1) }
      const conversations = [{ messages, tools, continueFinal, prefix: known }]
      const { result, parts } = await this.#engine.call<{ prefixUsed: boolean[] }>('render', { conversations })
      const ids = int32sOf(parts[0]!)
      const prefixUsed = result.prefixUsed[0]!
      return { ids: prefixUsed ? joined(prefix!.tokenIds, ids) : ids, prefixUsed }
    } catch (error) {
      if (isInvalid(error)) refuse(error.message)
      throw error
    }
  }

  async #advance(
    lane: string,
    added: readonly Sent<Prepared>[],
    dropped: readonly number[],
  ): Promise<Map<number, Completed>> {
    const requests = added.map(({ id, request: { promptIds, sampling } }) => {
      return { id, length: promptIds.length, ...sampling }
    })
    const adapter = lane === BASE ? null : lane
    const args = { adapter, requests, drop: dropped, steps: STEPS_PER_TURN, pieces: true }
    const prompts = Buffer.concat(added.map(({ request: { promptIds } }) => Buffer.from(promptIds.buffer)))
    const { result, parts } = await this.#engine.call<SampleAnswer>('sample', args, [prompts])
    return completedOf(result, parts)
  }
}

function completedOf(answer: SampleAnswer, parts: readonly Uint8Array[]): Map<number, Completed> {
  const tokens = int32sOf(parts[0]!)
  const logProbs = new Float64Array(copied(parts[1]!))
  const pieces = new Map(Object.entries(answer.pieces ?? {}).map(([id, text]) => [Number(id), text]))
  const found = new Map<number, Completed>()
  let start = 0
  for (const [index, id] of answer.ids.entries()) {
    const end = start + answer.lengths[index]!
    found.set(id, {
      ids: tokens.slice(start, end),
      logProbs: logProbs.slice(start, end),
      finish: answer.finish[index]!,
      truncated: answer.truncated[index]!,
      text: answer.texts?.[index] ?? '',
      pieces,
    })
    start = end
  }
  return found
}

function joined(start: readonly number[], end: Int32Array): Int32Array {
  const all = new Int32Array(start.length + end.length)
  all.set(start)
  all.set(end, start.length)
  return all
}

/** Copied, because typed arrays need an aligned offset. */
const copied = (part: Uint8Array): ArrayBuffer => new Uint8Array(part).buffer
const int32sOf = (part: Uint8Array): Int32Array => new Int32Array(copied(part))
