import type { TrajectoryParts } from '../trajectory/trajectory.ts'
import { checkKeys } from './check-keys.ts'
import type { Metrics } from './learner.ts'
import type { TestReport } from './pipeline/epoch-report.ts'

/** Thresholds for alarms. `entropy` and `length` compare with the first batch of the training. */
export interface AlarmSettings {
  /** Entropy fell below this fraction of its first value: the policy has almost stopped exploring. Default .01. */
  readonly entropy?: number
  /** Episodes became longer or shorter by this factor. Default 5. */
  readonly length?: number
  /**
   * The fraction of actions that could not be parsed; for a language model, of the calls of its tools. An answer in text
   * is parsed by its grader, which counts it as wrong. Default .2.
   */
  readonly parseFailures?: number
  /** Mean KL divergence from the reference policy, in nats per decision. Default 1. */
  readonly kl?: number
  /** The success rate on `offTask` fell by more than this since the first version. Default .1. */
  readonly offTask?: number
}

interface CheckedBatch {
  readonly metrics: Metrics
  readonly length: number | null
  readonly trajectories: readonly TrajectoryParts[]
}

interface FirstFigures {
  readonly entropy: number | null
  readonly length: number | null
}

const OFF_TASK_LOSS = 0.1

/** Error texts for actions that an environment or a parser could not interpret. */
const UNREADABLE = /ACTION_INVALID|cannot be parsed|no such tool/i
/** What the AI SDK answers to a tool call with wrong arguments, or of an unknown tool. */
const REFUSED_CALL = /^\W*(Invalid input for tool|Model tried to call unavailable tool)/
const MATCHED_CHARS = 500

/** Detects common ways in which a training goes wrong. */
export class Alarms {
  readonly #settings: Required<AlarmSettings>
  #first: FirstFigures = { entropy: null, length: null }

  constructor(settings: AlarmSettings = {}) {
    checkKeys(settings, ['entropy', 'length', 'parseFailures', 'kl', 'offTask'], '`alarms`')
    const { entropy = 0.01, length = 5, parseFailures = 0.2, kl = 1, offTask = OFF_TASK_LOSS } = settings
    this.#settings = { entropy, length, parseFailures, kl, offTask }
  }

  check({ metrics, length, trajectories }: CheckedBatch): string[] {
    const { entropy = null } = metrics as { entropy?: number }
    this.#first = { entropy: this.#first.entropy ?? entropy, length: this.#first.length ?? length }
    const alarms: string[] = []
    const { entropy: entropyAtFirst, length: lengthAtFirst } = this.#first
    if (entropy !== null && entropyAtFirst !== null && entropy < entropyAtFirst * this.#settings.entropy)
      alarms.push(
        `entropy has fallen from ${entropyAtFirst.toPrecision(3)} to ${entropy.toPrecision(3)}: the policy has almost stopped exploring`,
      )
    if (length !== null && lengthAtFirst !== null) {
      const factor = length / lengthAtFirst
      if (factor > this.#settings.length || factor < 1 / this.#settings.length)
        alarms.push(
          `the mean episode length is ${length.toFixed(1)} actions; in the first batch it was ${lengthAtFirst.toFixed(1)}`,
        )
    }
    const { kl } = metrics as { kl?: number }
    if (kl !== undefined && kl > this.#settings.kl)
      alarms.push(
        `the KL divergence from the reference policy is ${kl.toPrecision(3)} nats per decision (threshold ${this.#settings.kl}): lower \`lr\`, or raise \`kl\` of the loss`,
      )
    const share = unreadableShare(trajectories)
    if (share > this.#settings.parseFailures)
      alarms.push(
        `${(share * 100).toFixed(0)} % of actions or tool calls could not be parsed by the environment or the agent`,
      )
    return alarms
  }

  save(): FirstFigures {
    return this.#first
  }

  load(saved: unknown): void {
    this.#first = saved as FirstFigures
  }
}

/** Alarms about tasks outside of the training set. */
export function offTaskAlarms(report: TestReport | null, { offTask = OFF_TASK_LOSS }: AlarmSettings = {}): string[] {
  const lost = -(report?.difference?.value ?? 0)
  if (report === null || lost <= offTask) return []
  const { low, high } = report.difference!
  return [
    `the success rate of version ${report.version} on the \`offTask\` tasks is ${lost.toFixed(3)} lower than that of the first version (95 % interval ${(-high).toFixed(3)} to ${(-low).toFixed(3)}; threshold ${offTask}): lower \`lr\`, raise \`kl\` of the loss, or stop earlier`,
  ]
}

/** Failed parses are tool steps with an error. Other tool steps count only without actions: they are the model's calls. */
function unreadableShare(trajectories: readonly TrajectoryParts[]): number {
  let [actions, calls, unreadable] = [0, 0, 0]
  for (const { steps } of trajectories)
    for (const step of steps) {
      if (step.kind === 'action') actions++
      if (step.kind !== 'tool') continue
      calls++
      const text = (value: unknown) => JSON.stringify(value ?? '').slice(0, MATCHED_CHARS)
      const said = step.error === undefined ? text(step.result) : text(step.error)
      if (REFUSED_CALL.test(said) || (step.error !== undefined && UNREADABLE.test(said))) unreadable++
    }
  const all = actions || calls
  return all === 0 ? 0 : unreadable / all
}
