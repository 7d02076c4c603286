import type { ModelQueue, RunProgress } from './run-progress.ts'

/** The figures of a status line: those of a run's progress that can be combined for several runs. */
export type StatusFigures = Pick<
  RunProgress,
  'total' | 'done' | 'running' | 'restored' | 'retries' | 'perSecond' | 'etaMs' | 'waiting'
> & { readonly succeeded: number; readonly failed: number; readonly cancelled: number }

/** Combines several runs into one. A figure that is unknown for one run is unknown for all. */
export function combined(runs: readonly RunProgress[]): StatusFigures {
  const sum = (figure: (run: RunProgress) => number) => runs.reduce((total, run) => total + figure(run), 0)
  const unfinished = runs.filter(({ done, total }) => done !== total)
  return {
    total: runs.some(({ total }) => total === undefined) ? undefined : sum(({ total }) => total!),
    done: sum(({ done }) => done),
    succeeded: sum(({ counts }) => counts.success),
    failed: sum(({ counts: { failed, crashed, timeout } }) => failed + crashed + timeout),
    cancelled: sum(({ counts }) => counts.cancelled),
    running: sum(({ running }) => running),
    restored: sum(({ restored }) => restored),
    retries: sum(({ retries }) => retries),
    perSecond: runs.some(({ perSecond }) => perSecond !== undefined)
      ? sum(({ perSecond = 0 }) => perSecond)
      : undefined,
    etaMs:
      unfinished.length === 0 || unfinished.some(({ etaMs }) => etaMs === undefined)
        ? undefined
        : Math.max(...unfinished.map(({ etaMs }) => etaMs!)),
    waiting: longestQueues(runs.flatMap(({ waiting }) => waiting)),
  }
}

/** Runs share the queue of a model, and each reports its whole length, so lengths are not added. */
function longestQueues(queues: readonly ModelQueue[]): ModelQueue[] {
  const longest = new Map<string, ModelQueue>()
  for (const queue of queues)
    if (queue.queued > (longest.get(queue.model)?.queued ?? 0)) longest.set(queue.model, queue)
  return [...longest.values()].sort((a, b) => b.queued - a.queued)
}
