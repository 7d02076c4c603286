import { useEffect, useRef } from 'preact/hooks'

/** Drawing steps on the way changes heights, so the position is set again until it is stable. */
const MOST_FRAMES = 40
const STEADY_FRAMES = 8

/** Scrolls to a step when the address names another one, once the step is there. */
export function useScrollToStep(index: number | undefined, isThere: boolean): void {
  const done = useRef<number | undefined>(undefined)
  useEffect(() => {
    if (index === undefined || done.current === index || !isThere) {
      if (index === undefined) done.current = undefined
      return
    }
    done.current = index
    return scrollTo(`step-${index}`)
  }, [index, isThere])
}

function scrollTo(id: string): () => void {
  let frame = 0
  let steady = 0
  let last = Number.NaN
  let request = 0
  const stop = () => {
    cancelAnimationFrame(request)
    for (const event of ['wheel', 'touchstart', 'keydown']) removeEventListener(event, stop)
  }
  const go = () => {
    const element = document.getElementById(id)
    element?.scrollIntoView({ block: 'start' })
    const top = element?.getBoundingClientRect().top ?? Number.NaN
    steady = Math.abs(top - last) < 1 ? steady + 1 : 0
    last = top
    if (frame === 0) element?.focus({ preventScroll: true })
    if (++frame < MOST_FRAMES && steady < STEADY_FRAMES) request = requestAnimationFrame(go)
    else stop()
  }
  // Scrolling by the user stops this.
  for (const event of ['wheel', 'touchstart', 'keydown']) addEventListener(event, stop, { passive: true })
  go()
  return stop
}
