import { useEffect, useRef, useState } from 'preact/hooks'
import type { RunFigures } from '../../../src/view/api.ts'
import { useSource } from '../parts/source-context.ts'

const AT_ONCE = 3
/** The most runs whose figures are loaded, because each is a request. With more updates, only some are loaded. */
const MOST_RUNS = 200

/** The figures of finished runs. They no longer change, so each is loaded once. New ones are shown when all are loaded. */
export function useRunFigures(runs: readonly string[]): ReadonlyMap<string, RunFigures> {
  const source = useSource()
  const known = useRef(new Map<string, RunFigures>())
  const asked = useRef(new Set<string>())
  const [shown, setShown] = useState<ReadonlyMap<string, RunFigures>>(known.current)
  const step = Math.ceil(runs.length / MOST_RUNS)
  const wanted = runs.filter((_, place) => place % step === 0)
  const isGone = useRef(false)
  useEffect(
    () => () => {
      isGone.current = true
    },
    [],
  )
  useEffect(() => {
    const left = wanted.filter((run) => !asked.current.has(run))
    if (left.length === 0) return
    for (const run of left) asked.current.add(run)
    const load = async () => {
      for (let run = left.shift(); run !== undefined && !isGone.current; run = left.shift()) {
        // A run that was removed has no figures; the chart is complete without them.
        const figures = await source.figures(run).catch(() => undefined)
        if (figures) known.current.set(run, figures)
      }
    }
    void Promise.all(Array.from({ length: AT_ONCE }, load)).then(
      () => isGone.current || setShown(new Map(known.current)),
    )
  }, [wanted.join('\n')])
  return shown
}
