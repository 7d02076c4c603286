import { useMemo, useState } from 'preact/hooks'
import type { ComparedRuns } from '../../../src/view/api.ts'
import { ComparedSummaries } from '../compare/compared-summaries.tsx'
import { type Flip, flipsOf } from '../compare/flips.ts'
import { TaskRows } from '../compare/task-rows.tsx'
import { Loading } from '../parts/loading.tsx'
import { Problem } from '../parts/problem.tsx'
import { SafeText } from '../parts/safe-text.tsx'
import { useSource } from '../parts/source-context.ts'
import { useLoaded } from '../parts/use-loaded.ts'
import { compareHref } from '../route.ts'
import { count, counted } from '../text/quantities.ts'
import './compare.css'

export function ComparePage({ a, b }: { readonly a: string; readonly b: string }) {
  const source = useSource()
  const [anyway, setAnyway] = useState(false)
  const { value, error } = useLoaded(() => source.compare(a, b, anyway), [a, b, anyway])
  if (error !== undefined) return <Problem error={error} />
  if (!value) return <Loading what="the comparison" />
  return <Compared compared={value} compareAnyway={() => setAnyway(true)} />
}

function Compared({
  compared,
  compareAnyway,
}: {
  readonly compared: ComparedRuns
  readonly compareAnyway: () => void
}) {
  const flips = useMemo(() => flipsOf(compared), [compared])
  const count = (flip: Flip) => [...flips.values()].filter((one) => one === flip).length
  return (
    <div class="stack">
      <section class="panel stack">
        <div class="row spread">
          <h1 class="compare-verdict">
            <SafeText text={verdictOf(compared)} />
          </h1>
          <a href={compareHref(compared.b, compared.a)}>Swap A and B</a>
        </div>
        {hasNoVerdict(compared) && (
          <p>
            <button type="button" onClick={compareAnyway}>
              Compare them anyway
            </button>
          </p>
        )}
        <p class="row">
          <span class="compare-to-solved">
            <span aria-hidden="true">▲ </span>
            {counted(count('toSolved'), 'task')} from unsolved to solved
          </span>
          <span class="compare-to-unsolved">
            <span aria-hidden="true">▼ </span>
            {counted(count('toUnsolved'), 'task')} from solved to unsolved
          </span>
        </p>
        <Notes compared={compared} />
      </section>
      <div class="compare-split">
        <ComparedSummaries compared={compared} />
        <TaskRows compared={compared} flips={flips} />
      </div>
    </div>
  )
}

/** Their tasks or graders differ, and nobody asked to compare them anyway. */
const hasNoVerdict = ({ differs, success, tasks }: ComparedRuns) =>
  success === null && tasks > 0 && (differs.tasks.length > 0 || differs.graders.length > 0)

/** What was left out, and what makes the figures less reliable. */
function Notes({ compared }: { readonly compared: ComparedRuns }) {
  const { tasks, onlyInA, onlyInB, withoutResult, warnings, summaries, rows } = compared
  const all = tasks + onlyInA.length + onlyInB.length + withoutResult.length
  const notes = [
    `Paired by ${counted(tasks, 'task')} with a result in both runs.`,
    onlyInA.length > 0 && `Left out: ${counted(onlyInA.length, 'task')} that only A has.`,
    onlyInB.length > 0 && `Left out: ${counted(onlyInB.length, 'task')} that only B has.`,
    withoutResult.length > 0 && `Left out: ${count(withoutResult.length)} without a result in one of the runs.`,
    rows.length < all && `The table lists ${count(rows.length)} of ${counted(all, 'task')}: those that differ most.`,
    ...new Set([...warnings, ...summaries.a.warnings, ...summaries.b.warnings].map(sentence)),
  ]
  return (
    <ul class="compare-notes dim">
      {notes
        .filter((note) => note !== false)
        .map((note) => (
          <li key={note}>
            <SafeText text={note} />
          </li>
        ))}
    </ul>
  )
}

/** Starts the verdict with a capital letter, unless it starts with the name of a run. */
const verdictOf = ({ verdict, a, b }: ComparedRuns) =>
  verdict.startsWith(a) || verdict.startsWith(b) ? verdict : sentence(verdict)

const sentence = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`
