import { useState } from 'preact/hooks'
import { MOST_WHOLE_CHARS } from '../../../src/view/api.ts'
import { visible } from '../parts/safe-text.tsx'
import { useSource } from '../parts/source-context.ts'
import { bytes, count } from '../text/quantities.ts'

interface Props {
  /** The number of missing characters. */
  readonly missing: number
  /** The number of all characters, if known. */
  readonly size?: number
  /** The name of the cut value. */
  readonly what: string
  load(): Promise<void>
}

/** A note that texts were cut, and a button that loads them completely. */
export function LoadWhole({ missing, size, what, load }: Props) {
  const { report } = useSource()
  const [state, setState] = useState<{ readonly isLoading?: boolean; readonly problem?: string }>({})
  const said = `${count(missing)} characters of ${what} are not`
  if (report) return <p class="cut-note">{said} in this report.</p>
  if (size !== undefined && size > MOST_WHOLE_CHARS)
    return (
      <p class="cut-note">
        {said} loaded: {bytes(size)} are too large for a page. <code>manyworlds show RUN TASK --json</code> prints them.
      </p>
    )
  const start = () => {
    setState({ isLoading: true })
    load().catch((error: unknown) => setState({ problem: error instanceof Error ? error.message : String(error) }))
  }
  return (
    <p class="cut-note">
      {said} loaded.{' '}
      <button type="button" class="small-button" disabled={state.isLoading} onClick={start}>
        {state.isLoading ? 'Loading …' : `Show all${size === undefined ? '' : ` (${bytes(size)})`}`}
      </button>
      {state.problem !== undefined && <span role="alert"> Loading failed: {visible(state.problem)}.</span>}
    </p>
  )
}
