import { useEffect, useState } from 'preact/hooks'
import { useSource } from '../parts/source-context.ts'
import { neighboursOf, orderOf, type TaskOrder } from '../parts/task-order.ts'
import { go, taskHref } from '../route.ts'
import { count } from '../text/quantities.ts'
import { KeyList, useKeys } from './keys.tsx'

/** Links to other tasks of the run, in the order in which its page shows them. */
export function NeighbourButtons({ run, task }: { readonly run: string; readonly task: string }) {
  const source = useSource()
  const [isOpen, setOpen] = useState(false)
  const [order, setOrder] = useState<TaskOrder | undefined>()
  useEffect(() => {
    const stop = new AbortController()
    // An error is ignored, because the page works without the order.
    orderOf(source, run, stop.signal).then(setOrder, () => {})
    return () => stop.abort()
  }, [source, run])
  const around = order && neighboursOf(order, task)
  const open = (id: string | undefined) => (id === undefined ? undefined : () => go(taskHref(run, id)))
  useKeys({
    n: open(around?.nextFailure),
    p: open(around?.previousFailure),
    ']': open(around?.next),
    '[': open(around?.previous),
    '?': () => setOpen(true),
  })
  return (
    <nav class="neighbours" aria-label="Other tasks of the run">
      {around?.position !== undefined && around.count > 1 && (
        <span class="dim neighbours-position">
          {count(around.position + 1)} of {count(around.count)}
        </span>
      )}
      <button
        type="button"
        class="small-button"
        title="Previous task ([)"
        aria-label="Previous task"
        disabled={!around?.previous}
        onClick={open(around?.previous)}
      >
        ←
      </button>
      <button
        type="button"
        class="small-button"
        title="Next task (])"
        aria-label="Next task"
        disabled={!around?.next}
        onClick={open(around?.next)}
      >
        →
      </button>
      <button
        type="button"
        class="small-button"
        title="Next failure (n), previous failure (p)"
        disabled={!around?.nextFailure}
        onClick={open(around?.nextFailure)}
      >
        next failure
      </button>
      <button type="button" class="small-button" title="Keys (?)" aria-label="Keys" onClick={() => setOpen(true)}>
        ?
      </button>
      <KeyList isOpen={isOpen} close={() => setOpen(false)} />
    </nav>
  )
}
