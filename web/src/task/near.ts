/** Elements within this distance of the visible part of the page are near. */
const NEAR_PX = 1200

const calls = new WeakMap<Element, () => void>()
let observer: IntersectionObserver | undefined

/** Calls back once, when an element is near. Returns a function that cancels. */
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
