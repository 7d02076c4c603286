import type { ComponentChildren } from 'preact'
import { ComparePage } from './pages/compare.tsx'
import { CompareTrainingsPage } from './pages/compare-trainings.tsx'
import { RunPage } from './pages/run.tsx'
import { RunsPage } from './pages/runs.tsx'
import { TaskPage } from './pages/task.tsx'
import { TrainingPage } from './pages/training.tsx'
import { Empty } from './parts/empty.tsx'
import { Problem } from './parts/problem.tsx'
import { SourceContext } from './parts/source-context.ts'
import { type Crumbs, TopBar } from './parts/top-bar.tsx'
import { hrefOf, type Route, route, runHref } from './route.ts'
import type { Source } from './source/source.ts'
import { SourceError } from './source/source.ts'

export function App({ source }: { readonly source: Source | SourceError }) {
  if (source instanceof SourceError)
    return (
      <main>
        <Problem error={source} />
      </main>
    )
  return (
    <SourceContext.Provider value={source}>
      <Page route={route.value} />
    </SourceContext.Provider>
  )
}

function Page({ route }: { readonly route: Route }) {
  const [kind, first, second, third] = route.parts
  if (kind === undefined) return <Frame crumbs={[]} page={<RunsPage />} />
  if (kind === 'run' && first !== undefined && second === 'task' && third !== undefined) {
    const crumbs = [{ text: first, href: runHref(first) }, { text: third }]
    // A new component for each task, so that sections opened in one task are not open in the next.
    return <Frame crumbs={crumbs} page={<TaskPage key={`${first}/${third}`} run={first} task={third} />} />
  }
  if (kind === 'run' && first !== undefined)
    return <Frame crumbs={[{ text: first }]} page={<RunPage key={first} run={first} />} />
  if (kind === 'compare' && first !== undefined && second !== undefined)
    return (
      <Frame
        crumbs={[{ text: 'compare' }, { text: first, href: runHref(first) }, { text: second, href: runHref(second) }]}
        page={<ComparePage key={`${first}/${second}`} a={first} b={second} />}
      />
    )
  if (kind === 'training' && first !== undefined)
    return <Frame crumbs={[{ text: first }]} page={<TrainingPage key={first} training={first} />} />
  if (kind === 'trainings' && first !== undefined)
    return <Frame crumbs={[{ text: 'trainings' }]} page={<CompareTrainingsPage trainings={route.parts.slice(1)} />} />
  return (
    <Frame
      crumbs={[]}
      page={
        <Empty>
          Page not found. <a href={hrefOf([])}>All runs</a>
        </Empty>
      }
    />
  )
}

function Frame({ crumbs, page }: { readonly crumbs: Crumbs; readonly page: ComponentChildren }) {
  return (
    <>
      <TopBar crumbs={crumbs} />
      <main>{page}</main>
    </>
  )
}
