import type { ComponentChildren, RefObject } from 'preact'

interface Props {
  readonly label: string
  readonly class?: string
  readonly scroller?: RefObject<HTMLElement | null>
  readonly children: ComponentChildren
}

/** A part of the page that scrolls by itself, reachable with the keyboard. */
export const ScrollRegion = ({ label, class: name, scroller, children }: Props) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keys.
  <section class={name} ref={scroller ?? null} tabIndex={0} aria-label={label}>
    {children}
  </section>
)
