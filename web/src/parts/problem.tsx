import { SourceError } from '../source/source.ts'
import { SafeText } from './safe-text.tsx'

/** An error: what happened, what to do, and its code. */
export function Problem({ error }: { readonly error: unknown }) {
  const code = error instanceof SourceError ? error.code : 'UNEXPECTED'
  const message = error instanceof Error ? error.message : String(error)
  return (
    <div class="panel problem" role="alert">
      <p>
        <SafeText text={message} />
      </p>
      <p class="code">{code}</p>
    </div>
  )
}
