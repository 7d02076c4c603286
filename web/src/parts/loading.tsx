import { useEffect, useState } from 'preact/hooks'

const SHOW_AFTER_MS = 300

/** A message that something is being loaded. It appears after a delay, so that fast answers do not flash. */
export function Loading({ what }: { readonly what: string }) {
  const [isLate, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), SHOW_AFTER_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div class="empty" role="status">
      {isLate && `Loading ${what} …`}
    </div>
  )
}
