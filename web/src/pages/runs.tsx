import { useEffect, useMemo, useState } from 'preact/hooks'
import type { RunList as List } from '../../../src/view/api.ts'
import { Empty } from '../parts/empty.tsx'
import { Loading } from '../parts/loading.tsx'
import { Problem } from '../parts/problem.tsx'
import { SafeText, visible } from '../parts/safe-text.tsx'
import { useSource } from '../parts/source-context.ts'
import { compareHref, hrefOf, route, setQuery } from '../route.ts'
import { FiguresQueue } from '../runs/figures-queue.ts'
import { matcher } from '../runs/matches.ts'
import { RunList } from '../runs/run-list.tsx'
import { TrainingList } from '../runs/training-list.tsx'
import { type Source, SourceError } from '../source/source.ts'
import { count, counted } from '../text/quantities.ts'
import './runs.css'

export function RunsPage() {
  const source = useSource()
  const { list, error, isLost } = useLiveList(source)
  const [figures] = useState(() => new FiguresQueue(source))
  const [chosenRuns, setChosenRuns] = useState<readonly string[]>([])
  const [chosenTrainings, setChosenTrainings] = useState<readonly string[]>([])
  const text = route.value.query.get('q') ?? ''
  const { runs, trainings } = useMemo(() => {
    const isMatch = matcher(text)
    return { runs: list?.runs.filter(isMatch) ?? [], trainings: list?.trainings.filter(isMatch) ?? [] }
  }, [list, text])
  const isEmpty = list?.runs.length === 0 && list.trainings.length === 0
  if (error !== undefined && (!list || isEmpty)) return <Problem error={error} />
  if (!list) return <Loading what="the runs" />
  if (isEmpty) return <NoRuns place={source.start.place} />
  return (
    <div class={`stack${list.trainings.length === 0 || list.runs.length === 0 ? ' runs-alone' : ''}`}>
      <div class="row spread">
        <p class="dim runs-place cut" title={source.start.place}>
          <SafeText text={source.start.place} />
          {isLost && error === undefined && <strong class="state-failed"> connection lost, retrying …</strong>}
        </p>
        <input
          type="search"
          class="runs-search"
          placeholder="Search by id, script, engine or status"
          aria-label="Search by id, script, engine or status"
          value={text}
          onInput={(event) => setQuery({ q: event.currentTarget.value })}
        />
      </div>
      {error !== undefined && <Problem error={error} />}
      {list.runs.length > 0 && (
        <section class="panel stack" aria-labelledby="runs-title">
          <div class="row spread runs-head">
            <h1 id="runs-title">
              Runs <span class="dim runs-count">{shown(runs.length, list.runs.length)}</span>
            </h1>
            <CompareRuns runs={list} chosen={chosenRuns} clear={() => setChosenRuns([])} />
          </div>
          {runs.length === 0 ? (
            <Empty>No run matches “{text}”.</Empty>
          ) : (
            <RunList
              runs={runs}
              chosen={chosenRuns}
              figures={figures}
              choose={(run) => setChosenRuns((before) => toggled(before, run, 2))}
            />
          )}
        </section>
      )}
      {list.trainings.length > 0 && (
        <section class="panel stack" aria-labelledby="trainings-title">
          <div class="row spread runs-head">
            <h1 id="trainings-title">
              Trainings <span class="dim runs-count">{shown(trainings.length, list.trainings.length)}</span>
            </h1>
            <CompareTrainings chosen={chosenTrainings} clear={() => setChosenTrainings([])} />
          </div>
          {trainings.length === 0 ? (
            <Empty>No training matches “{text}”.</Empty>
          ) : (
            <TrainingList
              trainings={trainings}
              chosen={chosenTrainings}
              choose={(training) => setChosenTrainings((before) => toggled(before, training, Infinity))}
            />
          )}
        </section>
      )}
    </div>
  )
}

const shown = (some: number, all: number) => (some === all ? count(all) : `${count(some)} of ${count(all)}`)

/** Adds or removes a name. If there are more than `most`, the last chosen ones stay. */
const toggled = (chosen: readonly string[], name: string, most: number) =>
  chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name].slice(-most)

interface CompareProps {
  readonly chosen: readonly string[]
  clear(): void
}

function CompareRuns({ runs, chosen, clear }: CompareProps & { readonly runs: List }) {
  // The list has the newest run first. The older run becomes A, the baseline.
  const [newer, older] = runs.runs.map(({ runId }) => runId).filter((run) => chosen.includes(run))
  if (newer === undefined) return <span class="dim">Choose two runs to compare</span>
  return (
    <span class="row runs-compare" role="status">
      {older === undefined ? (
        <span class="dim">Choose one more run to compare</span>
      ) : (
        <a class="runs-go" href={compareHref(older, newer)}>
          Compare the two
        </a>
      )}
      <button type="button" onClick={clear}>
        Clear
      </button>
    </span>
  )
}

function CompareTrainings({ chosen, clear }: CompareProps) {
  if (chosen.length === 0) return <span class="dim">Choose trainings to compare</span>
  return (
    <span class="row runs-compare" role="status">
      {chosen.length === 1 ? (
        <span class="dim">Choose at least one more</span>
      ) : (
        <a class="runs-go" href={hrefOf(['trainings', ...chosen])}>
          Compare {counted(chosen.length, 'training')}
        </a>
      )}
      <button type="button" onClick={clear}>
        Clear
      </button>
    </span>
  )
}

function NoRuns({ place }: { readonly place: string }) {
  return (
    <Empty>
      <h1>No runs yet</h1>
      <p class="runs-none">
        Nothing is stored in <code>{visible(place)}</code>. A run appears here as soon as it starts.
      </p>
      <p class="runs-none">
        To start one, run <code>npx manyworlds run script.ts</code> in your project, or <code>npm start</code> in an
        example.
      </p>
    </Empty>
  )
}

/** The list of runs, updated live. */
function useLiveList(source: Source) {
  const [state, setState] = useState<{ list?: List; error?: unknown; isLost?: boolean }>({})
  useEffect(() => {
    const load = () =>
      source.runs().then(
        (list) => setState((before) => ({ ...before, list, error: undefined })),
        // If there already is a list, events are newer than this answer, so its error is ignored.
        (error: unknown) => setState((before) => (before.list ? before : { ...before, error })),
      )
    void load()
    return source.watch(
      'runs',
      (event) => {
        if (event.kind === 'runs') setState((before) => ({ ...before, list: event.list, error: undefined }))
        // The store may have become unreadable. It is read again with the next connection.
        else if (event.kind === 'gone')
          setState((before) => ({ ...before, error: new SourceError(event.error.code, event.error.message) }))
      },
      (isLost) => {
        setState((before) => (before.isLost === isLost ? before : { ...before, isLost }))
        if (!isLost) void load()
      },
    )
  }, [source])
  return state
}
