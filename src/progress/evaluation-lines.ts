import type { EvaluationSummary } from '../grade/summarize.ts'
import { describeRate, describeReward, describeTasks } from '../grade/words.ts'
import { counted } from '../text/quantities.ts'
import { wrap } from '../text/wrap.ts'

/** A figure with its name, wrapped into lines. */
export interface LabelledLines {
  readonly label: string
  readonly lines: readonly string[]
}

/** The evaluation of a run, for a reader. */
export function evaluationLines(summary: EvaluationSummary, width: number): LabelledLines[] {
  const { success, gradedSuccess, reward, passAt, tasks, rollouts, solved, unsolved } = summary
  const found: LabelledLines[] = []
  const add = (label: string, ...lines: string[]) =>
    found.push({ label, lines: lines.flatMap((line) => wrap(line, width)) })
  if (success) {
    const given = describeTasks(summary)
    const of = rollouts === tasks ? given : `${counted(rollouts, 'rollout')} of ${given}`
    const graded =
      gradedSuccess && gradedSuccess.rollouts !== success.rollouts
        ? [`graded only: ${describeRate(gradedSuccess)}`]
        : []
    add('solved', `${describeRate(success)}, ${solved} of ${solved + unsolved}; ${of}`, ...graded)
  }
  if (reward) add('reward', describeReward(reward))
  for (const [k, estimate] of Object.entries(passAt)) add(`pass@${k}`, describeRate(estimate))
  const apart = apartText(summary)
  if (apart !== '') add('no result', apart)
  if (summary.warnings.length > 0) add('note', ...summary.warnings)
  return found
}

function apartText({ withoutResult, failures }: EvaluationSummary): string {
  if (withoutResult === 0) return ''
  const reasons = Object.entries(failures.infrastructure).map(([code, number]) => `${number} ${code}`)
  return `${counted(withoutResult, 'rollout')}, not counted: ${reasons.join(', ')}`
}
