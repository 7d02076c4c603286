import { useEffect, useState } from 'preact/hooks'
import type { TrainingDetails } from '../../../src/view/api.ts'
import { useSource } from '../parts/source-context.ts'
import { useLoaded } from '../parts/use-loaded.ts'
import { SourceError } from '../source/source.ts'

export interface WatchedTraining {
  readonly details?: TrainingDetails
  readonly error?: unknown
  /** Whether the connection is lost. Reconnecting is automatic. */
  readonly isLost: boolean
}

/** A training, updated live. */
export function useTraining(training: string): WatchedTraining {
  const source = useSource()
  const { value, error } = useLoaded(() => source.training(training), [training])
  const [live, setLive] = useState<{ readonly details?: TrainingDetails; readonly error?: unknown }>({})
  const [isLost, setLost] = useState(false)
  useEffect(() => {
    setLive({})
    return source.watch(
      { training },
      (event) => {
        if (event.kind === 'training') setLive({ details: event.details })
        if (event.kind === 'gone') setLive({ error: new SourceError(event.error.code, event.error.message) })
      },
      setLost,
    )
  }, [training])
  const details = live.details ?? value
  return { ...(details && { details }), error: live.error ?? (details ? undefined : error), isLost }
}
