import type { TrajectoryParts } from '../trajectory/trajectory.ts'
import { checkKeys } from './check-keys.ts'
import type { Metrics } from './learner.ts'
import type { TestReport } from './pipeline/epoch-report.ts'

/** When something is reported. Each compares with the first batches of the training. */
export interface AlarmSettings {
  /** Entropy below this share of what it was at first: the policy hardly tries anything any more. Default .01. */
  readonly entropy?: number
  /** Episodes longer or shorter by this factor. Default 5. */
  readonly length?: number
  /** This share of actions could not be read. Default .2. */
  readonly parseFailures?: number
  /** Mean KL divergence from the reference policy, in nats per decision. Default 1. */
  readonly kl?: number
  /** Success on `offTask` lower than that of the first version by so much. Default .1. */
  readonly offTask?: number
}

interface Looked {
  readonly metrics: Metrics
  readonly length: number | null
  readonly trajectories: readonly TrajectoryParts[]
}

interface FirstFigures {
  readonly entropy: number | null
  readonly length: number | null
}

const OFF_TASK_LOSS = 0.1

/** Codes of errors of actions that an environment, or a parser, could not make sense of. */
const UNREADABLE = /ACTION_INVALID|cannot be parsed|no such tool/i

/** Notices when a training goes wrong in one of the usual ways. */
export class Alarms {
  readonly #settings: Required<AlarmSettings>
  #first: FirstFigures = { entropy: null, length: null }

  constructor(settings: AlarmSettings = {}) {
    checkKeys(settings, ['entropy', 'length', 'parseFailures', 'kl', 'offTask'], '`alarms`')
    const { entropy = 0.01, length = 5, parseFailures = 0.2, kl = 1, offTask = OFF_TASK_LOSS } = settings
    this.#settings = { entropy, length, parseFailures, kl, offTask }
  }

  look({ metrics, length, trajectories }: Looked): string[] {
    const { entropy = null } = metrics as { entropy?: number }
    this.#first = { entropy: this.#first.entropy ?? entropy, length: this.#first.length ?? length }
    const said: string[] = []
    const { entropy: entropyAtFirst, length: lengthAtFirst } = this.#first
    if (entropy !== null && entropyAtFirst !== null && entropy < entropyAtFirst * this.#settings.entropy)
      said.push(
        `entropy has fallen from ${entropyAtFirst.toPrecision(3)} to ${entropy.toPrecision(3)}: the policy hardly tries anything else any more`,
      )
    if (length !== null && lengthAtFirst !== null) {
      const factor = length / lengthAtFirst
      if (factor > this.#settings.length || factor < 1 / this.#settings.length)
        said.push(`episodes have ${length.toFixed(1)} actions, and had ${lengthAtFirst.toFixed(1)} at first`)
    }
    const { kl } = metrics as { kl?: number }
    if (kl !== undefined && kl > this.#settings.kl)
      said.push(
        `the policy has moved ${kl.toPrecision(3)} nats per decision away from where it began (KL divergence; the bound is ${this.#settings.kl}): lower \`lr\`, or raise \`kl\` of the loss`,
      )
    const share = unreadableShare(trajectories)
    if (share > this.#settings.parseFailures)
      said.push(`${(share * 100).toFixed(0)} % of actions could not be read by the environment`)
    return said
  }

  save(): FirstFigures {
    return this.#first
  }

  load(saved: unknown): void {
    this.#first = saved as FirstFigures
  }
}

/** What a training has cost elsewhere. */
export function offTaskAlarms(report: TestReport | null, { offTask = OFF_TASK_LOSS }: AlarmSettings = {}): string[] {
  const lost = -(report?.difference?.value ?? 0)
  if (report === null || lost <= offTask) return []
  const { low, high } = report.difference!
  return [
    `version ${report.version} is worse than the first one at tasks of another kind, by ${lost.toFixed(3)} (95 % interval ${(-high).toFixed(3)} to ${(-low).toFixed(3)}; the bound is ${offTask}): lower \`lr\`, raise \`kl\` of the loss, or stop earlier`,
  ]
}

function unreadableShare(trajectories: readonly TrajectoryParts[]): number {
  let [actions, unreadable] = [0, 0]
  for (const { steps } of trajectories)
    for (const step of steps) {
      if (step.kind === 'action') actions++
      else if (
        step.kind === 'tool' &&
        step.error !== undefined &&
        UNREADABLE.test(JSON.stringify(step.error).slice(0, 500))
      )
        unreadable++
    }
  return actions === 0 ? 0 : unreadable / actions
}
