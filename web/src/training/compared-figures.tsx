import { describeEvaluation } from '../../../src/cli/render/evaluation-figures.ts'
import type { EvaluatedSplit } from '../../../src/store/trainings/training-rows.ts'
import type { TrainingDetails } from '../../../src/view/api.ts'
import { SeriesSign } from '../parts/chart.tsx'
import { SafeText } from '../parts/safe-text.tsx'
import { State } from '../parts/state.tsx'
import { trainingHref } from '../route.ts'
import { count, duration, figure, percent } from '../text/quantities.ts'
import { alarmsOf } from './update-figures.ts'

/** The state of trainings, one line each. */
export function ComparedFigures({ all }: { readonly all: readonly TrainingDetails[] }) {
  return (
    <section class="panel stack" aria-labelledby="figures-title">
      <h1 id="figures-title">Trainings</h1>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keys. */}
      <div class="scroll-x" tabIndex={0}>
        <table class="plain">
          <thead>
            <tr>
              <th>Training</th>
              <th>State</th>
              <th class="number">Updates</th>
              <th class="number">Solved, last update</th>
              <th class="number">Reward, last update</th>
              <th>Best version in validation</th>
              <th>Test</th>
              <th class="number">Collecting</th>
              <th class="number">Learning</th>
              <th class="number">Alarms</th>
            </tr>
          </thead>
          <tbody>
            {all.map((details, place) => {
              const { overview, updates } = details
              const { id, successRate, reward, best } = overview
              return (
                <tr key={id}>
                  <th scope="row">
                    <span class="training-named">
                      <SeriesSign style={place} kind="line" />
                      <a href={trainingHref(id)}>
                        <SafeText text={id} />
                      </a>
                    </span>
                  </th>
                  <td>
                    <State state={overview.status} />
                  </td>
                  <td class="number">{count(overview.updates)}</td>
                  <td class="number">{successRate === undefined ? '' : percent(successRate)}</td>
                  <td class="number">{reward === undefined ? '' : figure(reward)}</td>
                  <td class="training-when">
                    {best === undefined ? '' : `${best}: ${evaluated(details, 'validation', best)}`}
                  </td>
                  <td class="training-when">
                    {overview.test ? evaluated(details, 'test', overview.test.version) : ''}
                  </td>
                  <td class="number">{duration(overview.collectMs)}</td>
                  <td class="number">{duration(overview.trainMs)}</td>
                  <td class="number">{count(updates.reduce((sum, update) => sum + alarmsOf(update).length, 0))}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function evaluated({ evaluations }: TrainingDetails, split: EvaluatedSplit, version: number): string {
  const row = evaluations.find((one) => one.split === split && one.version === version)
  return row ? describeEvaluation(row.summary) : 'not evaluated'
}
