import type { Difference, UsageFigure } from '../../../src/grade/compare.ts'
import type { EvaluationSummary } from '../../../src/grade/summarize.ts'
import { describeRate, describeReward, outwards } from '../../../src/grade/words.ts'
import type { ComparedRuns } from '../../../src/view/api.ts'
import { SafeText } from '../parts/safe-text.tsx'
import { runHref } from '../route.ts'
import { count, dollars, duration, figure } from '../text/quantities.ts'

const USAGE: readonly (readonly [figure: UsageFigure, name: string, format: (value: number) => string])[] = [
  ['inputTokens', 'Tokens in per rollout', figure],
  ['outputTokens', 'Tokens out per rollout', figure],
  ['cachedTokens', 'Tokens cached per rollout', figure],
  ['costUsd', 'Cost per rollout', dollars],
  ['runMs', 'Run time per rollout', duration],
]

/** The figures of both runs, and their differences. */
export function ComparedSummaries({ compared }: { readonly compared: ComparedRuns }) {
  const { summaries, success, reward, usage } = compared
  const row = (name: string, of: (summary: EvaluationSummary) => string, difference = '') => (
    <tr key={name}>
      <th scope="row">{name}</th>
      <td class="number">{of(summaries.a)}</td>
      <td class="number">{of(summaries.b)}</td>
      <td class="number">{difference}</td>
    </tr>
  )
  return (
    <section class="panel stack" aria-labelledby="summaries-title">
      <h2 id="summaries-title">Figures</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keys. */}
      <div class="scroll-x" tabIndex={0}>
        <table class="plain compare-figures">
          <thead>
            <tr>
              <td />
              <th class="number">
                A:{' '}
                <a href={runHref(compared.a)}>
                  <SafeText text={compared.a} />
                </a>
              </th>
              <th class="number">
                B:{' '}
                <a href={runHref(compared.b)}>
                  <SafeText text={compared.b} />
                </a>
              </th>
              <th class="number">B − A, over the same tasks</th>
            </tr>
          </thead>
          <tbody>
            {row('Solved', (one) => (one.success ? describeRate(one.success) : 'nothing graded'), points(success))}
            {(summaries.a.reward || summaries.b.reward) &&
              row('Reward', (one) => (one.reward ? describeReward(one.reward) : '–'), gain(reward))}
            {row('Tasks', (one) => count(one.tasks))}
            {row('Rollouts', (one) => count(one.rollouts))}
            {row('Without a result', (one) => count(one.withoutResult))}
            {USAGE.map(([key, name, format]) => {
              const used = usage[key]
              return used ? (
                <tr key={key}>
                  <th scope="row">{name}</th>
                  <td class="number">{format(used.a)}</td>
                  <td class="number">{format(used.b)}</td>
                  <td class="number">
                    {used.difference < 0 ? '−' : '+'}
                    {format(Math.abs(used.difference))}
                    {used.a > 0 && ` (${signed((100 * used.difference) / used.a, 1)} %)`}
                  </td>
                </tr>
              ) : null
            })}
          </tbody>
        </table>
      </div>
    </section>
  )
}

const signed = (value: number, digits: number) => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(digits)}`

/** In JSON, an infinite end of an interval is null. */
const end = (value: number | null, direction: -1 | 1, scale: number, digits: number) =>
  outwards((value ?? direction * Number.POSITIVE_INFINITY) * scale, direction, digits)

const points = (difference: Difference | null) =>
  difference
    ? `${signed(100 * difference.value, 1)} points (95 % interval ${end(difference.low, -1, 100, 1)} to ${end(difference.high, 1, 100, 1)})`
    : '–'

const gain = (difference: Difference | null) =>
  difference
    ? `${signed(difference.value, 3)} (95 % interval ${end(difference.low, -1, 1, 3)} to ${end(difference.high, 1, 1, 3)})`
    : '–'
