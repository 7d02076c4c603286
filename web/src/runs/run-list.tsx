import { useEffect, useMemo } from 'preact/hooks'
import type { RunOverview } from '../../../src/store/stored-task.ts'
import type { RunEntry, RunFigures } from '../../../src/view/api.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { SafeText } from '../parts/safe-text.tsx'
import { State } from '../parts/state.tsx'
import { route, runHref, setQuery } from '../route.ts'
import { doneOf } from '../run/pace.ts'
import { ProgressBar } from '../run/progress-bar.tsx'
import { count, counted, dateTime, dollars, duration, figure, percent, shortCount } from '../text/quantities.ts'
import type { FiguresQueue } from './figures-queue.ts'
import { Choose, Damaged } from './list-parts.tsx'
import {
  type FigureKey,
  figureOf,
  isFigureKey,
  isRunSortKey,
  type RunSortKey,
  runSortOf,
  runSortQuery,
  sortRuns,
} from './run-sort.ts'

const ROW_HEIGHT = 52

interface Props {
  readonly runs: readonly RunEntry[]
  readonly chosen: readonly string[]
  readonly figures: FiguresQueue
  choose(run: string): void
}

export function RunList({ runs: given, chosen, figures, choose }: Props) {
  const sort = runSortOf(route.value.query)
  const loaded = useSortedBy(given, sort.key, figures)
  const runs = useMemo(
    () => sortRuns(given, sort, (run) => figures.peek(run)),
    [given, sort.key, sort.isDescending, figures, loaded.arrivals],
  )
  const filled = figures.filled.value
  const columns = useMemo(() => {
    const all = columnsOf(runs, chosen, figures, choose)
    return all.filter(({ key }) => !isFigureKey(key) || filled.has(key) || key === sort.key)
  }, [runs, chosen, figures, filled, sort.key])
  return (
    <>
      <DataTable
        label="Runs"
        columns={columns}
        count={runs.length}
        rowHeight={ROW_HEIGHT}
        remember="runs"
        keyOf={(row) => runs[row]!.runId}
        hrefOf={(row) => ('problem' in runs[row]! ? undefined : runHref(runs[row]!.runId))}
        isMarked={(row) => chosen.includes(runs[row]!.runId)}
        sorting={{
          ...sort,
          keys: columns.map(({ key }) => key).filter(isRunSortKey),
          by: (key, isDescending) => setQuery({ sort: runSortQuery({ key: key as RunSortKey, isDescending }) }),
        }}
      />
      {runSortQuery(sort) !== undefined && (
        <p class="dim runs-order">
          <span role="status">
            Sorted by {ORDERS[sort.key]}
            {loaded.missing > 0 && `; ${count(loaded.missing)} of ${counted(given.length, 'run')} not loaded yet`}
          </span>{' '}
          <button type="button" class="small-button" onClick={() => setQuery({ sort: undefined })}>
            Newest first
          </button>
        </p>
      )}
    </>
  )
}

/** The order in words, because its column may be left out for lack of space. */
const ORDERS: Readonly<Record<RunSortKey, string>> = {
  ...{ started: 'start', id: 'id', state: 'status', tasks: 'tasks done', time: 'time', engine: 'engine' },
  ...{ success: 'success', reward: 'reward', tokens: 'tokens', cost: 'cost' },
}

/** Figures are loaded only for visible rows; sorting by a figure requires those of all runs. */
function useSortedBy(runs: readonly RunEntry[], key: RunSortKey, figures: FiguresQueue) {
  const isFigure = isFigureKey(key)
  useEffect(() => {
    if (!isFigure) return
    const stops = runs.map((run) => ('problem' in run ? () => {} : figures.watch(run.runId, stampOf(run))))
    return () => {
      for (const stop of stops) stop()
    }
  }, [runs, isFigure, figures])
  if (!isFigure) return { arrivals: 0, missing: 0 }
  const arrivals = figures.arrivals.value
  return { arrivals, missing: runs.filter((run) => !('problem' in run) && !figures.isDone(run.runId)).length }
}

/** Changes whenever the figures of the run may have changed. */
const stampOf = (run: RunOverview) => `${run.status} ${doneOf(run)}`

function columnsOf(
  runs: readonly RunEntry[],
  chosen: readonly string[],
  figures: FiguresQueue,
  choose: (run: string) => void,
): Column[] {
  const sound = (show: (run: RunOverview) => ReturnType<Column['cell']>) => (row: number) => {
    const run = runs[row]!
    return 'problem' in run ? '' : show(run)
  }
  const fromFigures = (
    key: FigureKey,
    title: string,
    rank: number,
    width: number,
    none: string,
    show: Show,
  ): Column => ({
    ...{ key, title, rank, width, isNumber: true },
    cell: sound((run) => <Figure run={run} queue={figures} none={none} show={show} />),
  })
  return [
    {
      ...{ key: 'choose', title: '', rank: 0, width: 22, hint: 'Choose two runs to compare' },
      cell: sound(({ runId }) => <Choose name={runId} isChosen={chosen.includes(runId)} choose={choose} />),
    },
    {
      ...{ key: 'id', title: 'Run', rank: 0, width: 96, wish: 170, grows: 1 },
      cell: (row) => <Name run={runs[row]!} queue={figures} />,
    },
    {
      ...{ key: 'state', title: 'Status', rank: 0, width: 96, narrow: 16 },
      cell: sound(({ status }) => <State state={status} />),
    },
    {
      ...{ key: 'tasks', title: 'Tasks', rank: 1, width: 110, isNumber: true },
      cell: sound((run) => <Progress run={run} />),
    },
    fromFigures(
      ...(['success', 'Success', 2, 104, 'The run is not graded'] as const),
      ({ success }) => success && [percent(success.value), interval(success, percent)],
    ),
    fromFigures(
      ...(['reward', 'Reward', 5, 104, 'The run has no rewards'] as const),
      ({ reward }) => reward && [figure(reward.value), interval(reward, figure)],
    ),
    fromFigures(...(['tokens', 'Tokens', 6, 90, 'The run recorded no tokens'] as const), (figures) => {
      const tokens = figureOf(figures, 'tokens')
      return tokens === undefined
        ? undefined
        : [shortCount(tokens), `${shortCount(figures.usage.outputTokens ?? 0)} out`]
    }),
    fromFigures(...(['cost', 'Cost', 7, 76, 'The run recorded no cost'] as const), ({ usage }) =>
      usage.costUsd === undefined ? undefined : [dollars(usage.costUsd)],
    ),
    {
      ...{ key: 'time', title: 'Time', rank: 4, width: 84, isNumber: true },
      cell: sound(({ elapsedMs }) => duration(elapsedMs)),
    },
    {
      ...{ key: 'started', title: 'Started', rank: 3, width: 156, isNumber: true },
      cell: sound(({ startedAt }) => dateTime(startedAt)),
    },
    {
      ...{ key: 'engine', title: 'Engine', rank: 8, width: 80 },
      cell: sound(({ engineName }) => engineName !== undefined && <SafeText text={engineName} />),
    },
  ]
}

function Name({ run, queue }: { readonly run: RunEntry; readonly queue: FiguresQueue }) {
  if ('problem' in run) return <Damaged name={run.runId} problem={run.problem} />
  return (
    <>
      <InSight run={run} queue={queue} />
      <a class="mono runs-id" href={runHref(run.runId)} data-row-link title={run.runId}>
        <SafeText text={run.runId} />
      </a>
      <div class="dim cut runs-script" title={run.error ?? run.script}>
        {run.error === undefined ? (
          <SafeText text={fileName(run.script ?? '')} />
        ) : (
          <span class="state-failed">
            <SafeText text={run.error.slice(0, 200)} />
          </span>
        )}
      </div>
    </>
  )
}

function Progress({ run }: { readonly run: RunOverview }) {
  const done = doneOf(run)
  return (
    <>
      <div class="runs-progress-text">
        {count(done)}
        {run.total !== undefined && run.total !== done && ` of ${shortCount(run.total)}`}
        {run.status === 'running' && run.total !== undefined && (
          <span class="dim"> {Math.floor((100 * done) / Math.max(1, run.total))} %</span>
        )}
      </div>
      <ProgressBar overview={run} />
    </>
  )
}

type Show = (figures: RunFigures) => readonly [first: string, second?: string] | undefined

/**
 * Requests the figures of a visible row. Not done by the columns of figures, because the figures decide which of these
 * columns exist.
 */
function InSight({ run, queue }: { readonly run: RunOverview; readonly queue: FiguresQueue }) {
  const stamp = stampOf(run)
  useEffect(() => queue.watch(run.runId, stamp), [run.runId, stamp, queue])
  return null
}

interface FigureProps {
  readonly run: RunOverview
  readonly queue: FiguresQueue
  /** The tooltip if there is no figure. */
  readonly none: string
  readonly show: Show
}

function Figure({ run, queue, none, show }: FigureProps) {
  const { value, isFailed } = queue.of(run.runId).value
  if (!value) return isFailed ? <span title="The figures cannot be read">?</span> : <span class="dim">…</span>
  const shown = show(value)
  if (shown) return <Two first={shown[0]} second={shown[1]} />
  return (
    <span class="dim" title={none}>
      –
    </span>
  )
}

const Two = ({ first, second }: { readonly first: string; readonly second: string | undefined }) => (
  <>
    <div>{first}</div>
    {second !== undefined && <div class="dim runs-second">{second}</div>}
  </>
)

const interval = ({ low, high }: { readonly low: number; readonly high: number }, show: (value: number) => string) =>
  `${show(low).replace(/ %$/, '')}–${show(high)}`

const fileName = (path: string) => path.split(/[\\/]/).slice(-2).join('/')
