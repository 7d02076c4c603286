import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type VirtualItem,
  Virtualizer,
} from '@tanstack/virtual-core'
import type { RefObject } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'

export interface VirtualRows {
  readonly items: readonly VirtualItem[]
  readonly height: number
  scrollTo(index: number): void
}

/** The rows of a long list that are in sight, all of the same height. */
export function useVirtualRows(scroller: RefObject<HTMLElement | null>, count: number, rowHeight: number): VirtualRows {
  const [, redraw] = useState(0)
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollToFn: elementScroll,
    observeElementOffset,
    observeElementRect,
    onChange: () => redraw((times) => times + 1),
  }
  const [virtualizer] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(options))
  virtualizer.setOptions(options)
  useLayoutEffect(() => virtualizer._didMount(), [])
  useLayoutEffect(() => virtualizer._willUpdate())
  return {
    items: virtualizer.getVirtualItems(),
    height: virtualizer.getTotalSize(),
    scrollTo: (index) => virtualizer.scrollToIndex(index, { align: 'auto' }),
  }
}
