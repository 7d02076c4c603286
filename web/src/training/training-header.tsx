import { describeEvaluation } from '../../../src/cli/render/evaluation-figures.ts'
import type { TrainingDetails } from '../../../src/view/api.ts'
import { Fact, ScriptFact } from '../parts/fact.tsx'
import { SafeText } from '../parts/safe-text.tsx'
import { State } from '../parts/state.tsx'
import { ago, bytes, count, counted, dateTime, duration, percent } from '../text/quantities.ts'

const MOST_CHARS = 4000

/** The state of a training. */
export function TrainingHeader({ details }: { readonly details: TrainingDetails }) {
  const { overview, updates, evaluations } = details
  const { status, error, endedAt, startedAt, best, epoch } = overview
  const last = updates.at(-1)
  const bestRow = evaluations.find(({ version, split }) => version === best && split === 'validation')
  const test = overview.test
  const elapsedMs = (endedAt ?? (status === 'running' ? Date.now() : (last?.at ?? startedAt))) - startedAt
  return (
    <section class="panel stack">
      <div class="row">
        <h1 class="training-title">
          <SafeText text={overview.id} />
        </h1>
        <State state={status} />
        {status === 'running' && last && (
          <span class="dim">
            one update every {duration(pace(updates))}, the last {ago(last.at)}
          </span>
        )}
      </div>
      {error !== undefined && (
        <p class="state-failed" role="alert">
          <SafeText text={error.slice(0, MOST_CHARS)} />
        </p>
      )}
      <dl class="facts">
        <Fact name="updates" text={`${count(overview.updates)}${epoch > 0 ? ` in ${counted(epoch, 'epoch')}` : ''}`} />
        {overview.successRate !== undefined && <Fact name="solved, last update" text={percent(overview.successRate)} />}
        {overview.reward !== undefined && <Fact name="reward, last update" text={overview.reward.toFixed(3)} />}
        {best !== undefined && (
          <Fact
            name="best version"
            text={`${best}${bestRow ? `: ${describeEvaluation(bestRow.summary)} in validation` : ''}`}
          />
        )}
        {test && <Fact name={`test, version ${test.version}`} text={describeEvaluation(test.summary)} />}
        <Fact name="time" text={duration(Math.max(0, elapsedMs))} />
        <Fact name="collecting" text={duration(overview.collectMs)} />
        <Fact name="learning" text={duration(overview.trainMs)} />
        <Fact
          name="versions"
          text={`${count(overview.versions)}, ${count(overview.keptVersions)} kept (${bytes(overview.bytes)})`}
        />
        <Fact name="agent" text={overview.agent} />
        <Fact name="policy" text={overview.policy} />
        <Fact name="seed" text={String(overview.seed)} />
        <Fact name="started" text={dateTime(startedAt)} />
        {overview.sessions > 1 && <Fact name="sessions" text={count(overview.sessions)} />}
        {overview.script !== undefined && <ScriptFact script={overview.script} />}
      </dl>
    </section>
  )
}

/** The mean time from one update to the next, over the last few. */
function pace(updates: TrainingDetails['updates']): number {
  const recent = updates.slice(-20)
  return recent.length < 2
    ? recent[0]!.collectMs + recent[0]!.trainMs
    : (recent.at(-1)!.at - recent[0]!.at) / (recent.length - 1)
}
