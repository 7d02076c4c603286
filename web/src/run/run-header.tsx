import { useEffect, useState } from 'preact/hooks'
import type { RunOverview } from '../../../src/store/stored-task.ts'
import type { SessionEntry } from '../../../src/view/api.ts'
import { Fact, ScriptFact } from '../parts/fact.tsx'
import { SafeText } from '../parts/safe-text.tsx'
import { ScrollRegion } from '../parts/scroll-region.tsx'
import { State } from '../parts/state.tsx'
import { trainingHref } from '../route.ts'
import { ago, bytes, count, counted, dateTime, duration, figure } from '../text/quantities.ts'
import { doneOf } from './pace.ts'
import { ProgressBar } from './progress-bar.tsx'
import type { RunData } from './run-data.ts'
import { Sessions } from './sessions.tsx'

const TICK_MS = 1000

/** The facts about the run and its progress. */
export function RunHeader({ data }: { readonly data: RunData }) {
  const overview = data.overview.value
  const details = data.details.value
  const isRunning = overview?.status === 'running'
  const seenAt = useSeenAt(overview)
  useTick(isRunning)
  if (!overview || !details) return null
  const { status, total, sample, script, engineName, error } = overview
  const done = doneOf(overview)
  // The elapsed time comes from the server; the page adds the time since it received the overview.
  const elapsed = overview.elapsedMs + (isRunning ? Date.now() - seenAt : 0)
  return (
    <section class="panel run-header" aria-label="Overview">
      <div class="row spread">
        <div class="row">
          <h1 class="mono run-title">
            <SafeText text={overview.runId} />
          </h1>
          <State state={status} />
          {data.isLost.value && (
            <span class="run-lost" role="status">
              connection lost, retrying …
            </span>
          )}
        </div>
        {details.training !== undefined && (
          <span>
            run of training{' '}
            <a class="mono" href={trainingHref(details.training)}>
              <SafeText text={details.training} />
            </a>
          </span>
        )}
      </div>
      <ProgressBar overview={overview} />
      <div class="run-counts">
        <strong>
          {count(done)}
          {total !== undefined && ` of ${count(total)}`} {total === 1 ? 'task' : 'tasks'} done
        </strong>
        <Counts overview={overview} />
        {isRunning && <PaceText data={data} />}
      </div>
      <dl class="facts">
        <Fact name="started" text={dateTime(overview.startedAt)} hint={ago(overview.startedAt)} />
        <Fact name="elapsed" text={duration(elapsed)} />
        {engineName !== undefined && <Fact name="engine" text={engineName} />}
        <Workers sessions={details.sessions} data={data} />
        {script !== undefined && <ScriptFact script={script} />}
        {sample && (
          <Fact name="sample" text={`${count(sample.limit)} of ${count(sample.of)} tasks, seed ${sample.seed}`} />
        )}
        {overview.bytes !== undefined && <Fact name="file" text={bytes(overview.bytes)} hint={overview.file} />}
        {overview.sessions > 1 && <Fact name="sessions" text={count(overview.sessions)} />}
      </dl>
      {error !== undefined && (
        <div class="run-error" role="note">
          <strong>{status === 'interrupted' ? 'Stopped' : 'Error'}</strong>
          <ScrollRegion class="scroll-x" label="Error">
            <pre>
              <SafeText text={error} />
            </pre>
          </ScrollRegion>
        </div>
      )}
      {isUnfinished(overview) && details.training === undefined && details.resume !== undefined && (
        <p class="dim">
          To run what is left:{' '}
          <code>
            <SafeText text={details.resume} />
          </code>
        </p>
      )}
      <Sessions sessions={details.sessions} />
    </section>
  )
}

const STATES = ['success', 'failed', 'timeout', 'crashed', 'cancelled'] as const

function Counts({ overview }: { readonly overview: RunOverview }) {
  return (
    <>
      {STATES.filter((state) => overview.counts[state] > 0).map((state) => (
        <span key={state} class="run-count">
          {count(overview.counts[state])} <State state={state} />
        </span>
      ))}
    </>
  )
}

function PaceText({ data }: { readonly data: RunData }) {
  const { perSecond, remainingMs } = data.pace() ?? {}
  if (!perSecond) return data.tasksLoaded.value ? <span class="dim">no rate yet</span> : null
  return (
    <span class="run-pace">
      {perSecond >= 1
        ? `${figure(Number(perSecond.toPrecision(3)))} tasks/s`
        : `${figure(Number((60 * perSecond).toPrecision(3)))} tasks/min`}
      {remainingMs !== undefined && ` · about ${duration(remainingMs)} left`}
    </span>
  )
}

function Workers({ sessions, data }: { readonly sessions: readonly SessionEntry[]; readonly data: RunData }) {
  const workers = [...data.workers.value.values()]
  if (workers.length === 0) return null
  const lost = workers.filter((worker) => worker.lost !== undefined).length
  const hosts = new Set(workers.map(({ host }) => host)).size
  const where = hosts > 1 ? ` on ${counted(hosts, 'machine')}` : ''
  const over = sessions.length > 1 ? ' in all sessions' : ''
  return (
    <Fact
      name="workers"
      text={`${count(workers.length)}${where}${lost > 0 ? `, ${count(lost)} lost` : ''}`}
      hint={`${counted(workers.length, 'worker')}${where}${over}`}
    />
  )
}

const isUnfinished = ({ status }: RunOverview) => status === 'died' || status === 'interrupted'

function useTick(isOn: boolean): void {
  const [, tick] = useState(0)
  useEffect(() => {
    if (!isOn) return
    const timer = setInterval(() => tick((times) => times + 1), TICK_MS)
    return () => clearInterval(timer)
  }, [isOn])
}

/** When the page got this overview. */
function useSeenAt(overview: RunOverview | undefined): number {
  const [seen] = useState<{ overview?: RunOverview | undefined; at: number }>({ at: 0 })
  if (seen.overview !== overview) {
    seen.overview = overview
    seen.at = Date.now()
  }
  return seen.at
}
