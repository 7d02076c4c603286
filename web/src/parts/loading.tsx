import { useEffect, useState } from 'preact/hooks'

const SHOW_AFTER_MS = 300

/** Says that something is being loaded, unless it comes at once. */
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
