import { hash } from 'node:crypto'
import type { PolicyRef } from '../agents/policy.ts'
import { ManyworldsError } from '../errors.ts'
import { randomFrom } from '../random.ts'
import { wordsOf } from '../text/thrown.ts'
import { type Algorithm, checkedAlgorithm } from './algorithm.ts'
import { ByteReader, ByteWriter } from './bytes.ts'
import type { Batch, GradientCore, Learner, LearnerStart, Metrics, Published } from './learner.ts'
import { mergeMetrics, wrongMetric } from './metrics.ts'
import { checkRows, type Row } from './row.ts'

/** "MWGL", as bytes. */
const MAGIC = 0x4c47574d

/**
 * Makes a learner from a core. The same seed and batches produce the same versions, bit for bit; with softmax and neural cores
 * for any `microBatch`.
 *
 * @example
 * const learner = gradientLearner(softmaxCore(policy), { loss: { name: 'clip' }, lr: 0.05 })
 */
export function gradientLearner(core: GradientCore, algorithm: Algorithm): Learner {
  return new GradientLearner(core, checkedAlgorithm(algorithm))
}

class GradientLearner implements Learner {
  readonly #core: GradientCore
  readonly #algorithm: Required<Algorithm>
  #seed: number | string | undefined
  #version = 0
  /**
   * The state of the core, if it is unchanged since it was last read; cached because it may be hundreds of megabytes.
   */
  #state: Uint8Array | undefined
  /** True: the core died, and must load `#state` before the next call. */
  #lost = false

  constructor(core: GradientCore, algorithm: Required<Algorithm>) {
    this.#core = core
    this.#algorithm = algorithm
  }

  get ended(): boolean {
    // When a learner is wrapped through its prototype, `this` is the wrapper, which has no private members.
    return #core in this ? (this.#core.ended ?? false) : false
  }

  async start({ seed, state }: LearnerStart): Promise<Published> {
    this.#seed = seed
    if (state !== undefined) await this.load(state)
    else await this.#recover()
    return this.publish()
  }

  async values(observations: readonly unknown[]): Promise<Float64Array> {
    this.#started()
    if (this.#core.values === undefined)
      throw new ManyworldsError(
        'LEARNER_INVALID',
        `policy '${this.#core.policy}' has no value head, but advantages by 'gae' need one; set \`value: true\` in its options`,
      )
    await this.#recover()
    return this.#core.values(observations)
  }

  async update({ rows }: Batch): Promise<Metrics> {
    this.#started()
    checkRows(rows)
    if (rows.length === 0) return { samples: 0 }
    await this.#recover()
    const before = (this.#state ??= await this.#core.state())
    try {
      const metrics = await this.#learn(rows)
      const wrong = wrongMetric(metrics)
      if (wrong) throw new ManyworldsError('LEARNER_FAILED', wrong)
      this.#version++
      this.#state = undefined
      return metrics
    } catch (error) {
      await this.#restore(before)
      const where = `update ${this.#version + 1} of policy '${this.#core.policy}' failed; version ${this.#version} was kept`
      if (ManyworldsError.is(error))
        throw new ManyworldsError(error.code, `${where}: ${error.message}`, { cause: error })
      throw new ManyworldsError('LEARNER_FAILED', `${where}: ${wordsOf(error).message}`, { cause: error })
    }
  }

  async publish(): Promise<Published> {
    this.#started()
    await this.#recover()
    const bytes = await this.#core.weights()
    const digest = hash('sha256', bytes)
    return { ref: { policy: this.#core.policy, version: this.#version, digest, at: { blob: digest } }, bytes }
  }

  /** Versions are bytes held by the driver, so there is nothing to free. */
  async retire(_ref: PolicyRef): Promise<void> {}

  async save(): Promise<Uint8Array> {
    this.#started()
    await this.#recover()
    const out = new ByteWriter()
    out.u32(MAGIC)
    out.f64(this.#version)
    out.text(JSON.stringify(this.#seed))
    out.bytes((this.#state ??= await this.#core.state()))
    return out.finish()
  }

  async load(state: Uint8Array): Promise<void> {
    const { version, seed, core } = readState(state)
    await this.#core.load(core)
    // Copied, because the caller may modify its bytes.
    this.#state = core.slice()
    this.#lost = false
    this.#version = version
    this.#seed = seed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#core[Symbol.asyncDispose]?.()
  }

  /** A core that died is restarted only when needed, because the caller may dispose of this learner instead. */
  async #restore(before: Uint8Array): Promise<void> {
    this.#state = before
    this.#lost = true
    // If this fails too, the next call tries again; the update's own error is the one to report.
    if (!this.ended) await this.#recover().catch(() => {})
  }

  async #recover(): Promise<void> {
    if (!this.#lost && !(this.ended && this.#state)) return
    await this.#core.load(this.#state!)
    this.#lost = false
  }

  #started(): void {
    if (this.#seed === undefined)
      throw new ManyworldsError('LEARNER_INVALID', 'the learner was not started; call `start({ seed })` first')
  }

  async #learn(given: readonly Row[]): Promise<Metrics> {
    const { loss, lr, clipNorm, epochs, miniBatches, microBatch } = this.#algorithm
    const rows = this.#algorithm.proximal === 'learner' ? await this.#withProximal(given) : given
    const steps: Metrics[] = []
    for (let epoch = 0; epoch < epochs; epoch++)
      for (const part of this.#parts(rows, Math.min(miniBatches, rows.length), epoch)) {
        let metrics: Metrics = {}
        for (let at = 0; at < part.length; at += microBatch)
          metrics = await this.#core.forwardBackward(part.slice(at, at + microBatch), loss)
        steps.push({ ...metrics, ...(await this.#core.optimStep({ lr, ...(clipNorm < Infinity && { clipNorm }) })) })
      }
    return mergeMetrics(steps)
  }

  /** The rows of each step. Weights are scaled up, because a step has only a part of the rows. */
  #parts(rows: readonly Row[], count: number, epoch: number): readonly (readonly Row[])[] {
    if (count === 1) return [rows]
    const [stream, visit, rollout] = ['mini-batches', this.#version, epoch + 1]
    const random = randomFrom({ seed: this.#seed!, purpose: 'learner', stream, task: '', visit, rollout })
    const shuffled = [...rows]
    for (let i = shuffled.length - 1; i > 0; i--) {
      const j = Math.floor(random() * (i + 1))
      ;[shuffled[i], shuffled[j]] = [shuffled[j]!, shuffled[i]!]
    }
    const from = (part: number) => Math.floor((part * rows.length) / count)
    return Array.from({ length: count }, (_, part) =>
      shuffled.slice(from(part), from(part + 1)).map((row) => weighted(row, count)),
    )
  }

  async #withProximal(rows: readonly Row[]): Promise<readonly Row[]> {
    const { microBatch } = this.#algorithm
    const result: Row[] = []
    for (let at = 0; at < rows.length; at += microBatch) {
      const part = rows.slice(at, at + microBatch)
      const { logProbs } = await this.#core.forward(part, 'current')
      for (const [i, row] of part.entries()) {
        const found = logProbs[i]!
        if (row.proximal !== undefined) result.push(row)
        else result.push(row.kind === 'action' ? { ...row, proximal: found[0]! } : { ...row, proximal: found })
      }
    }
    return result
  }
}

const weighted = (row: Row, factor: number): Row =>
  row.kind === 'action'
    ? { ...row, weight: row.weight * factor }
    : { ...row, weight: row.weight.map((weight) => weight * factor) }

function readState(state: Uint8Array): { version: number; seed: number | string; core: Uint8Array } {
  try {
    const reader = new ByteReader(state)
    if (reader.u32() !== MAGIC) throw new RangeError('the magic number does not match')
    const version = reader.f64()
    const seed = JSON.parse(reader.text()) as number | string
    const core = reader.bytes()
    reader.end()
    return { version, seed, core }
  } catch (error) {
    throw new ManyworldsError(
      'LEARNER_INVALID',
      `these ${state.length} bytes are not the state of a learner, or they are damaged: ${(error as Error).message}`,
      { cause: error },
    )
  }
}
