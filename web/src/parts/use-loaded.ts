import { useEffect, useState } from 'preact/hooks'

/** What is being loaded: nothing yet, a value, or an error. */
export interface Loaded<Value> {
  readonly value?: Value
  readonly error?: unknown
  reload(): void
}

/** Loads a value, and loads it again if `keys` change. The old value stays until the new one is loaded. */
export function useLoaded<Value>(load: () => Promise<Value>, keys: readonly unknown[]): Loaded<Value> {
  const [state, setState] = useState<Omit<Loaded<Value>, 'reload'>>({})
  const [times, setTimes] = useState(0)
  useEffect(() => {
    let isStale = false
    load().then(
      (value) => isStale || setState({ value }),
      (error: unknown) => isStale || setState({ error }),
    )
    return () => {
      isStale = true
    }
  }, [...keys, times])
  return { ...state, reload: () => setTimes((before) => before + 1) }
}
