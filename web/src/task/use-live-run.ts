import { useEffect, useRef, useState } from 'preact/hooks'
import type { LiveEvent } from '../../../src/view/api.ts'
import { useSource } from '../parts/source-context.ts'

/** Events come in bursts, so changes are reported at most this often. */
const PACE_MS = 700

export interface Live {
  /** Incremented when something has changed. */
  readonly version: number
  readonly isLost: boolean
}

type RunEvent = Extract<LiveEvent, { kind: 'run' }>

/** Watches a run for relevant events. A finished run is watched too, because it may be resumed. */
export function useLiveRun(run: string, matters: (event: RunEvent) => boolean): Live {
  const source = useSource()
  const [live, setLive] = useState<Live>({ version: 0, isLost: false })
  const latest = useRef(matters)
  latest.current = matters
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let wasLost = false
    const changed = () => {
      timer ??= setTimeout(() => {
        timer = undefined
        setLive(({ version, isLost }) => ({ version: version + 1, isLost }))
      }, PACE_MS)
    }
    const stop = source.watch(
      { run },
      (event) => {
        if (event.kind === 'run' && latest.current(event)) changed()
      },
      (isLost) => {
        // Events during the lost connection are missing, so report a change.
        if (wasLost && !isLost) changed()
        wasLost = isLost
        setLive((before) => (before.isLost === isLost ? before : { ...before, isLost }))
      },
    )
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [source, run])
  return live
}
