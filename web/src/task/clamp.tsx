import type { ComponentChildren } from 'preact'
import { useContext, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { AskedForAll } from './whole.tsx'

/** Taller content is cut, unless the rest is too small to be worth a button. */
const MOST_PX = 360
const SPARE_PX = 60

interface Props {
  readonly mostPx?: number
  readonly children: ComponentChildren
}

/** Shows the beginning of tall content, and the rest on request. */
export function Clamp({ mostPx = MOST_PX, children }: Props) {
  const ref = useRef<HTMLDivElement>(null)
  const [isHigh, setHigh] = useState(false)
  const isAll = useContext(AskedForAll)
  const [isOpen, setOpen] = useState(false)
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setHigh(entry!.contentRect.height > mostPx + SPARE_PX))
    observer.observe(ref.current!)
    return () => observer.disconnect()
  }, [mostPx])
  const isCut = isHigh && !isOpen && !isAll
  return (
    <>
      <div
        class={isCut ? 'clamp clamp-cut' : 'clamp'}
        style={isCut ? { maxHeight: `${mostPx}px` } : {}}
        // An element that gets the focus by keyboard must be visible.
        onFocusIn={() => isCut && setOpen(true)}
      >
        <div ref={ref}>{children}</div>
      </div>
      {isHigh && !isAll && (
        <div>
          <button type="button" class="small-button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Show less' : 'Show more'}
          </button>
        </div>
      )}
    </>
  )
}
