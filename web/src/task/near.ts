/** How far from the visible part of the page something is near. */
const NEAR_PX = 1200

const calls = new WeakMap<Element, () => void>()
let observer: IntersectionObserver | undefined

/** Calls back once an element is near. Returns how to stop waiting. */
export function whenNear(element: Element, call: () => void): () => void {
  observer ??= new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) calls.get(target)?.()
    },
    { rootMargin: `${NEAR_PX}px 0px` },
  )
  calls.set(element, call)
  observer.observe(element)
  return () => {
    calls.delete(element)
    observer!.unobserve(element)
  }
}
