import { type ComponentChildren, createContext } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ScrollRegion } from '../parts/scroll-region.tsx'
import { useSource } from '../parts/source-context.ts'
import type { ValueAt } from '../source/source.ts'
import { LoadWhole } from './load-whole.tsx'
import { readShown } from './shown-value.ts'

/** Whether the user requested the complete value. Then nothing inside is folded. */
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

/** A part of a task whose texts the server may have cut. The complete texts are loaded on request. */
export function useWhole(cutJson: unknown, at: ValueAt): Whole {
  const source = useSource()
  // The loaded value stays while the task is updated.
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
  /** The name of the value. */
  readonly what: string
  readonly children: ComponentChildren
}

/**
 * A frame around the view of a value, with a note below it if something is missing. A completely loaded value scrolls,
 * because it may be very long.
 */
export function WholeFrame({ whole: { missing, size, isWhole, load }, what, children }: Props) {
  const scroller = useRef<HTMLDivElement>(null)
  // The button that had the focus was removed, so move the focus.
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
