import { useEffect, useState } from 'preact/hooks'
import type { TrainingDetails } from '../../../src/view/api.ts'
import { useSource } from '../parts/source-context.ts'

const AGAIN_MS = 3000

/**
 * Several trainings, updated by polling: a browser opens at most six connections to a server, and a stream of events for
 * each training would use them up.
 */
export function usePolledTrainings(ids: readonly string[]): {
  readonly details: readonly TrainingDetails[]
  readonly errors: readonly unknown[]
} {
  const source = useSource()
  const [known, setKnown] = useState<ReadonlyMap<string, { details?: TrainingDetails; error?: unknown }>>(new Map())
  useEffect(() => {
    let isOver = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = async (wanted: readonly string[]) => {
      const running: string[] = []
      for (const id of wanted) {
        const loaded = await source.training(id).then(
          (details) => ({ details }),
          (error: unknown) => ({ error }),
        )
        if (isOver) return
        setKnown((before) => {
          // If the server does not answer for a moment, keep what is shown.
          const shown = before.get(id)?.details
          return new Map(before).set(id, 'error' in loaded && shown ? { details: shown } : loaded)
        })
        if ('error' in loaded || loaded.details.overview.status === 'running') running.push(id)
      }
      if (running.length > 0 && !source.report) timer = setTimeout(() => void load(running), AGAIN_MS)
    }
    void load(ids)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [ids.join('\n')])
  const states = ids.map((id) => known.get(id))
  return {
    details: states.flatMap((state) => state?.details ?? []),
    errors: states.flatMap((state) => (state?.error === undefined ? [] : [state.error])),
  }
}
