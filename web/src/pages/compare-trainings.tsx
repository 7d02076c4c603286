import { useMemo } from 'preact/hooks'
import type { TrainingDetails } from '../../../src/view/api.ts'
import { Empty } from '../parts/empty.tsx'
import { Loading } from '../parts/loading.tsx'
import { Problem } from '../parts/problem.tsx'
import { SafeText } from '../parts/safe-text.tsx'
import { hrefOf } from '../route.ts'
import { ComparedCharts } from '../training/compared-charts.tsx'
import { ComparedFigures } from '../training/compared-figures.tsx'
import { differingSettings } from '../training/differing-settings.ts'
import { usePolledTrainings } from '../training/use-polled-trainings.ts'
import './training.css'

export function CompareTrainingsPage({ trainings }: { readonly trainings: readonly string[] }) {
  const ids = [...new Set(trainings)]
  const { details, errors } = usePolledTrainings(ids)
  return (
    <div class="stack">
      {errors.map((error, place) => (
        <Problem key={place} error={error} />
      ))}
      {details.length + errors.length < ids.length ? (
        <Loading what="the trainings" />
      ) : (
        details.length > 0 && <Compared all={details} />
      )}
    </div>
  )
}

function Compared({ all }: { readonly all: readonly TrainingDetails[] }) {
  const differing = useMemo(() => differingSettings(all.map(({ config }) => config)), [all])
  return (
    <>
      {all.length === 1 && (
        <Empty>
          There is only one training to compare. Select several in the <a href={hrefOf([])}>list of trainings</a> to
          compare them.
        </Empty>
      )}
      <ComparedFigures all={all} />
      <section class="panel stack" aria-labelledby="settings-title">
        <h2 id="settings-title">Settings that differ</h2>
        {differing.length === 0 ? (
          <p class="dim">None: the trainings have the same settings.</p>
        ) : (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keys.
          <div class="scroll-x" tabIndex={0}>
            <table class="plain">
              <thead>
                <tr>
                  <th>Setting</th>
                  {all.map(({ overview }) => (
                    <th key={overview.id}>
                      <SafeText text={overview.id} />
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {differing.map(({ path, values }) => (
                  <tr key={path}>
                    <th scope="row" class="mono">
                      <SafeText text={path} />
                    </th>
                    {values.map((value, place) => (
                      <td key={all[place]!.overview.id} class="mono training-setting">
                        {value === undefined ? <span class="dim">–</span> : <SafeText text={value.slice(0, 200)} />}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      <ComparedCharts all={all} />
    </>
  )
}
