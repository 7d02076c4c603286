import { useEffect, useMemo } from 'preact/hooks'
import type { TrainingDetails } from '../../../src/view/api.ts'
import { useChartLink } from '../parts/chart.tsx'
import { Empty } from '../parts/empty.tsx'
import { Loading } from '../parts/loading.tsx'
import { Problem } from '../parts/problem.tsx'
import { route, setQuery } from '../route.ts'
import { Alarms } from '../training/alarms.tsx'
import { Configuration } from '../training/configuration.tsx'
import { CursorBar } from '../training/cursor-bar.tsx'
import { FigureCharts } from '../training/figure-charts.tsx'
import { LaneChart } from '../training/lane-chart.tsx'
import { NumbersTable } from '../training/numbers-table.tsx'
import { TextVersions } from '../training/text-versions.tsx'
import { TrainingHeader } from '../training/training-header.tsx'
import { UpdateCard } from '../training/update-card.tsx'
import { kindsOf, numbersOf } from '../training/update-figures.ts'
import { useRunFigures } from '../training/use-run-figures.ts'
import { useTraining } from '../training/use-training.ts'
import { VersionsTable } from '../training/versions-table.tsx'
import './training.css'

export function TrainingPage({ training }: { readonly training: string }) {
  const { details, error, isLost } = useTraining(training)
  if (error !== undefined && !details) return <Problem error={error} />
  if (!details) return <Loading what="the training" />
  return (
    <div class="stack">
      {error !== undefined && <Problem error={error} />}
      {isLost && (
        <p class="notice" role="status">
          The connection to the server is lost; it is tried again.
        </p>
      )}
      <Training details={details} />
    </div>
  )
}

function Training({ details }: { readonly details: TrainingDetails }) {
  const { updates } = details
  const link = useChartLink()
  const { query } = route.value
  const settings = { window: wholeIn(query.get('smooth')) || 1, isLog: query.has('log') }
  const picked = query.has('update') ? wholeIn(query.get('update')) : undefined
  const numbers = useMemo(() => updates.map(numbersOf), [updates])
  const kinds = useMemo(() => kindsOf(numbers), [numbers])
  const figures = useRunFigures(useMemo(() => updates.flatMap(({ run }) => run ?? []), [updates]))
  const pick = (update: number | undefined) => setQuery({ update: update === undefined ? undefined : String(update) })
  useEffect(() => {
    link.pinned.value = picked ?? null
    link.cursor.value = picked ?? null
  }, [picked])
  return (
    <>
      <TrainingHeader details={details} />
      <Alarms updates={updates} onPick={pick} />
      {updates.length === 0 ? (
        <Empty>
          {details.overview.status === 'running'
            ? 'No update so far: the first episodes are being collected. The charts appear with the first update.'
            : 'No update was stored. See the message above, or the output of the script that started the training.'}
        </Empty>
      ) : (
        <>
          <CursorBar {...{ details, numbers, kinds, settings, link }} onPick={pick} />
          <div class={picked === undefined ? 'stack' : 'training-split'}>
            <div class="stack">
              <FigureCharts {...{ details, numbers, kinds, figures, settings, link }} onPick={pick} />
              <LaneChart {...{ details, link }} onPick={pick} />
            </div>
            {picked !== undefined && (
              <UpdateCard
                {...{ details, kinds }}
                number={picked}
                numbers={numbers[updates.findIndex(({ number }) => number === picked)]}
                onPick={pick}
              />
            )}
          </div>
        </>
      )}
      {details.texts && details.texts.length > 0 && <TextVersions texts={details.texts} best={details.overview.best} />}
      {details.versions.length > 0 && <VersionsTable details={details} onPick={pick} />}
      {updates.length > 0 && <NumbersTable {...{ updates, numbers, kinds }} />}
      <Configuration config={details.config} />
    </>
  )
}

/** A whole number from the query, which a user may have typed; 0 if it is invalid. */
function wholeIn(text: string | null): number {
  const value = Number(text)
  return Number.isSafeInteger(value) && value > 0 ? value : 0
}
