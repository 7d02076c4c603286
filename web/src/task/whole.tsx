import { type ComponentChildren, createContext } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ScrollRegion } from '../parts/scroll-region.tsx'
import { useSource } from '../parts/source-context.ts'
import type { ValueAt } from '../source/source.ts'
import { LoadWhole } from './load-whole.tsx'
import { readShown } from './shown-value.ts'

/** Whether somebody asked for all of it: then nothing inside is folded. */
export const AskedForAll = createContext(false)

export interface Whole {
  /** The value to show. Its texts may be cut. */
  readonly value: unknown
  readonly json: unknown
  readonly missing: number
  readonly size: number
  readonly isWhole: boolean
  load(): Promise<void>
}

/** A part of a task whose texts the server may have cut. It is loaded to its end on demand. */
export function useWhole(cutJson: unknown, at: ValueAt): Whole {
  const source = useSource()
  // What was asked for stays while the task is followed.
  const [loaded, setLoaded] = useState<{ readonly json: unknown }>()
  const json = loaded ? loaded.json : cutJson
  const read = useMemo(() => {
    let [missing, size] = [0, 0]
    const value = readShown(json, (characters, of) => {
      missing += characters
      size += of
    })
    return { value, missing, size }
  }, [json])
  const load = async () => setLoaded({ json: (await source.value(at)).value })
  return { ...read, json, isWhole: loaded !== undefined, load }
}

interface Props {
  readonly whole: Whole
  /** What it is, in words. */
  readonly what: string
  readonly children: ComponentChildren
}

/** Around a view of the value: says below it how much is missing. What was loaded to its end scrolls, because it may be very long. */
export function WholeFrame({ whole: { missing, size, isWhole, load }, what, children }: Props) {
  const scroller = useRef<HTMLDivElement>(null)
  // The button that had the focus is gone.
  useEffect(() => scroller.current?.focus({ preventScroll: true }), [isWhole])
  if (isWhole)
    return (
      <ScrollRegion class="whole" scroller={scroller} label={`All of ${what}`}>
        <AskedForAll.Provider value={true}>{children}</AskedForAll.Provider>
      </ScrollRegion>
    )
  return (
    <>
      {children}
      {missing > 0 && <LoadWhole missing={missing} size={size} what={what} load={load} />}
    </>
  )
}
