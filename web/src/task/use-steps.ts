import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { useSource } from '../parts/source-context.ts'
import { type ShownStep, shownStep } from './shown-step.ts'

/** Steps are drawn in batches while they arrive. */
const BATCH_MS = 150
/** The interval at which new steps are requested. */
const LIVE_MS = 1000
/** The most steps that are loaded without a request of the user. */
const MOST_STEPS = 5000

export interface Steps {
  readonly list: readonly ShownStep[]
  readonly isLoading: boolean
  /** Whether there are more steps than were loaded. */
  readonly hasMore: boolean
  readonly error?: unknown
  loadMore(): void
  /** Loads a step again, with complete texts. */
  loadWhole(index: number): Promise<void>
}

const NONE: Pick<Steps, 'list' | 'isLoading' | 'hasMore' | 'error'> = { list: [], isLoading: true, hasMore: false }

/** The steps of an attempt as they arrive. `start` is null if there are none. `isLive`: new steps may follow. */
export function useSteps(run: string, task: string, start: number | null, isLive: boolean): Steps {
  const source = useSource()
  const [state, setState] = useState(NONE)
  const [most, setMost] = useState(MOST_STEPS)
  const loaded = useRef<{ start: number | null; list: ShownStep[] }>({ start: null, list: [] })
  useEffect(() => {
    if (loaded.current.start !== start) {
      loaded.current = { start, list: [] }
      setState({ ...NONE, isLoading: start !== null })
    }
    if (start === null) return
    const stop = new AbortController()
    const { signal } = stop
    const { list } = loaded.current
    /** Loads the current steps. Returns true if there are more than the limit. */
    const load = async (): Promise<boolean> => {
      let shownAt = performance.now()
      for await (const line of source.steps({ run, task, start, from: list.length }, signal)) {
        if (signal.aborted || list.length >= most) return true
        list.push(shownStep(line))
        if (performance.now() - shownAt < BATCH_MS) continue
        setState({ list: [...list], isLoading: true, hasMore: false })
        // Yields, so that the page can be drawn.
        await pause(0)
        shownAt = performance.now()
      }
      return false
    }
    const follow = async () => {
      for (let known = -1; !signal.aborted; ) {
        const hasMore = await load()
        if (signal.aborted) return
        if (list.length !== known || hasMore) setState({ list: [...list], isLoading: false, hasMore })
        known = list.length
        if (!isLive || hasMore) return
        // There are no events for steps, so poll. Not while the page is hidden.
        do await pause(LIVE_MS)
        while (document.hidden && !signal.aborted)
      }
    }
    follow().catch((error: unknown) => {
      if (!signal.aborted) setState({ list: [...list], isLoading: false, hasMore: false, error })
    })
    return () => stop.abort()
  }, [source, run, task, start, isLive, most])
  const loadWhole = useCallback(
    async (index: number) => {
      const { start, list } = loaded.current
      if (start === null) return
      const whole = shownStep(await source.step({ run, task, start }, index))
      const place = list.findIndex(({ step }) => step.index === index)
      if (place < 0) return
      list[place] = whole
      setState((before) => ({ ...before, list: [...list] }))
    },
    [source, run, task],
  )
  return { ...state, loadMore: () => setMost((before) => before + MOST_STEPS), loadWhole }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
