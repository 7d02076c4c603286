import type { EvaluationSummary } from '../../../src/grade/summarize.ts'
import type { RunFigures } from '../../../src/view/api.ts'
import { count, counted, figure, percent } from '../text/quantities.ts'

/** The evaluation of the run: figures over tasks with their intervals. */
export function Evaluation({ evaluation }: { readonly evaluation: EvaluationSummary }) {
  const { success, gradedSuccess, reward, passAt, solved, unsolved, withoutResult, warnings } = evaluation
  const isOther = gradedSuccess && success && gradedSuccess.value !== success.value
  return (
    <section class="panel stack" aria-labelledby="evaluation-title">
      <h2 id="evaluation-title">Evaluation</h2>
      <div class="evaluation-figures">
        {success && <Gauge name="solved" estimate={success} show={percent} />}
        {isOther && <Gauge name="solved, of graded" estimate={gradedSuccess} show={percent} />}
        {reward && <Gauge name="mean reward" estimate={reward} show={figure} />}
        {Object.entries(passAt).map(([k, estimate]) => (
          <Gauge key={k} name={`pass@${k}`} estimate={estimate} show={percent} />
        ))}
      </div>
      <p class="dim">
        {counted(evaluation.rollouts, 'rollout')} of {counted(evaluation.tasks, 'task')}: {count(solved)} solved,{' '}
        {count(unsolved)} unsolved
        {withoutResult > 0 && `, ${count(withoutResult)} without a result`}
      </p>
      {warnings.length > 0 && (
        <ul class="evaluation-warnings">
          {warnings.map((warning) => (
            <li key={warning}>{warning}</li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** The main figures of a run with very many tasks. */
export function Figures({ figures }: { readonly figures: RunFigures }) {
  const { success, reward } = figures
  if (!success && !reward) return null
  return (
    <section class="panel stack" aria-labelledby="evaluation-title">
      <h2 id="evaluation-title">Evaluation</h2>
      <div class="evaluation-figures">
        {success && <Gauge name="success" estimate={success} show={percent} />}
        {reward && <Gauge name="mean reward" estimate={reward} show={figure} />}
      </div>
    </section>
  )
}

interface Shown {
  readonly value: number
  readonly low: number
  readonly high: number
  readonly confidence?: number
  readonly tasks?: number
}

function Gauge(props: { readonly name: string; readonly estimate: Shown; show(value: number): string }) {
  const { name, estimate, show } = props
  const { value, low, high, confidence = 0.95, tasks } = estimate
  const over = tasks === undefined ? '' : ` over ${counted(tasks, 'task')}`
  // Rewards may have any range; a scale from 0 to 1 makes sense only if they are within it.
  const hasScale = low >= 0 && high <= 1
  return (
    <div class="evaluation-figure" title={`${Math.round(100 * confidence)} % interval${over}`}>
      <span class="dim">{name}</span>
      <span class="evaluation-value">{show(value)}</span>
      <span class="dim">
        {show(low)} to {show(high)}
      </span>
      {hasScale && (
        <span class="evaluation-scale" aria-hidden="true">
          <span
            class="evaluation-interval"
            style={{ left: `${100 * low}%`, width: `${Math.max(1, 100 * (high - low))}%` }}
          />
          <span class="evaluation-point" style={{ left: `${100 * value}%` }} />
        </span>
      )}
    </div>
  )
}
