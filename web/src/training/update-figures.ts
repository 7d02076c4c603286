import type { TrainingDetails } from '../../../src/view/api.ts'
import { count, dollars, duration, figure, percent } from '../text/quantities.ts'

export type Update = TrainingDetails['updates'][number]

export interface FigureKind {
  readonly key: string
  readonly name: string
  readonly about?: string
  readonly format: (value: number) => string
  readonly formatAxis?: (value: number) => string
  readonly range?: readonly [number, number]
}

/** `12.5 %` without needless digits, for axes */
const axisPercent = (share: number) => `${Number((100 * share).toPrecision(3))} %`
const share = { format: percent, formatAxis: axisPercent }
const plain = { format: figure }
const whole = { format: (value: number) => (Number.isInteger(value) ? count(value) : figure(value)) }
const time = { format: duration }

/** Known figures with names and formats, in the order in which they are shown. Other figures follow, with their own names. */
const KNOWN: readonly FigureKind[] = [
  { key: 'successRate', name: 'Solved', about: 'Share of the episodes that were solved', ...share, range: [0, 1] },
  { key: 'reward', name: 'Reward', about: 'Mean reward of the episodes', ...plain },
  { key: 'loss', name: 'Loss', ...plain },
  { key: 'valueLoss', name: 'Value loss', about: 'Squared error of the predicted returns', ...plain },
  {
    key: 'entropy',
    name: 'Entropy',
    about: 'How undecided the policy is, in nats; near 0 it explores nothing',
    ...plain,
  },
  {
    key: 'klFromBehavior',
    name: 'KL from the acting policy',
    about: 'How far the update moved from the policy that acted',
    ...plain,
  },
  { key: 'kl', name: 'KL from the reference', about: 'How far the policy is from the reference policy', ...plain },
  { key: 'clipFraction', name: 'Clip fraction', about: 'Share of actions at a bound of the ratio', ...share },
  { key: 'gradientNorm', name: 'Gradient norm', ...plain },
  {
    key: 'staleness.mean',
    name: 'Staleness',
    about: 'Versions between the policy that acted and the one that learned',
    ...plain,
  },
  { key: 'staleness.max', name: 'Largest staleness', ...plain },
  { key: 'length', name: 'Episode length', about: 'Actions per episode; of a language model, tokens', ...plain },
  { key: 'tokens', name: 'Tokens per episode', about: 'Model tokens, in and out', ...whole },
  {
    key: 'explainedVariance',
    name: 'Explained variance',
    about: '1: the values predict all returns; 0: no better than the mean',
    ...plain,
  },
  {
    key: 'effectiveSampleShare',
    name: 'Effective samples',
    about: 'Share of on-policy samples with the same information',
    ...share,
  },
  { key: 'cappedShare', name: 'Capped weights', about: 'Share of samples whose importance weight was cut', ...share },
  { key: 'largestRatio', name: 'Largest ratio', ...plain },
  { key: 'largestWeight', name: 'Largest weight', ...plain },
  { key: 'ratio', name: 'Mean ratio', ...plain },
  { key: 'gradientScale', name: 'Gradient scale', about: 'Below 1: the gradient was clipped', ...plain },
  { key: 'policyLoss', name: 'Policy loss', ...plain },
  { key: 'evaluations', name: 'Evaluations', about: 'Rollouts that the learner has used so far', ...whole },
  { key: 'candidates', name: 'Candidates', ...whole },
  { key: 'proposed', name: 'Proposed', ...whole },
  { key: 'accepted', name: 'Accepted', ...whole },
  { key: 'unusable', name: 'Unusable', ...whole },
  { key: 'usd', name: 'Cost', about: 'US dollars so far', format: dollars },
  { key: 'collectMs', name: 'Collecting', about: 'Time to collect the episodes', ...time },
  { key: 'trainMs', name: 'Learning', about: 'Time to learn from the episodes', ...time },
  { key: 'trained', name: 'Episodes learned from', ...whole },
  {
    key: 'skippedGroups',
    name: 'Skipped groups',
    about: 'Groups of rollouts with equal rewards, which teach nothing',
    ...whole,
  },
  { key: 'dropped', name: 'Dropped rollouts', about: 'Rollouts without a reward', ...whole },
  { key: 'samples', name: 'Samples', about: 'Actions that were learned from', ...whole },
  { key: 'episodes', name: 'Episodes', ...whole },
]

/** Fields of reports that are not figures: counts that belong to other figures, and the version, which is shown separately. */
const LEFT_OUT = new Set(['version', 'rewarded', 'judged'])
const MAX_DEPTH = 2

/** The numbers of an update by name: those of its report, of the learner's metrics, and its times. */
export function numbersOf({ report, collectMs, trainMs }: Update): Map<string, number> {
  const numbers = new Map<string, number>()
  const { metrics, ...rest } = report as { readonly metrics?: unknown }
  collect(rest, '', 1, numbers)
  collect(metrics, '', 1, numbers)
  for (const name of LEFT_OUT) numbers.delete(name)
  return numbers.set('collectMs', collectMs).set('trainMs', trainMs)
}

function collect(fields: unknown, prefix: string, depth: number, into: Map<string, number>): void {
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return
  for (const [name, value] of Object.entries(fields)) {
    const key = `${prefix}${name}`
    if (typeof value === 'number' && Number.isFinite(value)) into.set(into.has(key) ? `metrics.${key}` : key, value)
    else if (depth < MAX_DEPTH) collect(value, `${key}.`, depth + 1, into)
  }
}

/** The kinds of figures that these updates have: the known ones first, the others by name. */
export function kindsOf(numbers: readonly ReadonlyMap<string, number>[]): FigureKind[] {
  const found = new Set<string>()
  for (const one of numbers) for (const key of one.keys()) found.add(key)
  const others = [...found].filter((key) => !KNOWN.some((kind) => kind.key === key)).sort()
  return [...KNOWN.filter(({ key }) => found.has(key)), ...others.map((key) => ({ key, name: key, ...plain }))]
}

export const alarmsOf = ({ report }: Update): string[] => {
  const { alarms } = report as { readonly alarms?: unknown }
  return Array.isArray(alarms) ? alarms.filter((one): one is string => typeof one === 'string') : []
}
