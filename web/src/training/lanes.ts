import type { TrainingDetails } from '../../../src/view/api.ts'

export interface Span {
  readonly update: number
  readonly kind: 'collect' | 'train'
  readonly from: number
  readonly to: number
  /** The row, if collections overlap. */
  readonly row: number
}

export interface Lanes {
  readonly spans: readonly Span[]
  readonly collectRows: number
  readonly from: number
  readonly to: number
  /** For how long both were running, and for how long none. */
  readonly bothMs: number
  readonly idleMs: number
  /** Long times in which nothing happened, such as between two sessions. */
  readonly pauses: readonly { readonly from: number; readonly to: number }[]
}

const MOST_ROWS = 6
/** Idle time is a pause if it is longer than this, and than a share of all work. */
const PAUSE_MS = 5000
const PAUSE_SHARE = 0.1

/**
 * When episodes were collected, and when the learner was training. A plan is stored when its collection starts, an update
 * when it is done.
 */
export function lanesOf(
  { plans, updates }: Pick<TrainingDetails, 'plans' | 'updates'>,
  now?: number,
): Lanes | undefined {
  const planned = new Map(plans.map((plan) => [plan.number, plan]))
  const spans: Span[] = []
  const rowEnds: number[] = []
  const rowFor = (from: number, to: number) => {
    const free = rowEnds.findIndex((end) => end <= from)
    const row = free >= 0 ? free : Math.min(rowEnds.length, MOST_ROWS - 1)
    rowEnds[row] = Math.max(rowEnds[row] ?? 0, to)
    return row
  }
  for (const { number, at, collectMs, trainMs } of updates) {
    const begun = at - trainMs
    const plan = planned.get(number)
    planned.delete(number)
    // `collectMs` does not include collecting in an earlier session.
    const from = plan ? Math.min(plan.at, begun) : begun - collectMs
    const to = Math.min(from + collectMs, begun)
    spans.push({ update: number, kind: 'collect', from, to, row: rowFor(from, to) })
    spans.push({ update: number, kind: 'train', from: begun, to: at, row: 0 })
  }
  // Plans without an update are being collected.
  if (now !== undefined)
    for (const { number, at } of planned.values())
      spans.push({ update: number, kind: 'collect', from: at, to: now, row: rowFor(at, now) })
  if (spans.length === 0) return undefined
  const from = spans.reduce((least, span) => Math.min(least, span.from), Number.POSITIVE_INFINITY)
  const to = spans.reduce((most, span) => Math.max(most, span.to), from)
  return { spans, collectRows: Math.max(1, rowEnds.length), from, to, ...sweep(spans) }
}

/** Visits the starts and ends in order of time. */
function sweep(spans: readonly Span[]): Pick<Lanes, 'bothMs' | 'idleMs' | 'pauses'> {
  const edges = spans
    .flatMap(({ kind, from, to }) => [
      { at: from, kind, change: 1 },
      { at: to, kind, change: -1 },
    ])
    .sort((a, b) => a.at - b.at || b.change - a.change)
  const open = { collect: 0, train: 0 }
  let [bothMs, idleMs, busyMs, before] = [0, 0, 0, edges[0]!.at]
  const gaps: { from: number; to: number }[] = []
  for (const { at, kind, change } of edges) {
    const ms = at - before
    if (open.collect > 0 && open.train > 0) bothMs += ms
    if (open.collect + open.train > 0) busyMs += ms
    else if (ms > 0) {
      idleMs += ms
      gaps.push({ from: before, to: at })
    }
    open[kind] += change
    before = at
  }
  const least = Math.max(PAUSE_MS, PAUSE_SHARE * busyMs)
  return { bothMs, idleMs, pauses: gaps.filter((gap) => gap.to - gap.from > least) }
}

/** Maps times to 0…1 with shortened pauses, so that a night between two sessions does not compress the rest. */
export function timeScale(from: number, to: number, pauses: Lanes['pauses']): (time: number) => number {
  const within = pauses.filter((pause) => pause.to > from && pause.from < to)
  const paused = within.reduce((sum, pause) => sum + pause.to - pause.from, 0)
  const shortened = 0.03 * Math.max(1, to - from - paused)
  const total = Math.max(1, to - from - paused + within.length * shortened)
  return (time) => {
    let shown = time - from
    for (const pause of within) {
      const part = Math.min(Math.max(0, time - pause.from), pause.to - pause.from)
      shown += (part / (pause.to - pause.from)) * shortened - part
    }
    return shown / total
  }
}
