import type { ComponentChildren } from 'preact'
import { jsonIn } from '../../../src/text/json-in.ts'
import { SafeText } from '../parts/safe-text.tsx'
import { ResultView } from './content-view.tsx'
import { ErrorView } from './error-view.tsx'
import { TextBlock } from './text-block.tsx'
import { ValueView } from './value-view.tsx'

interface Props {
  readonly name: string
  /** The arguments as the model wrote them. */
  readonly raw: string
  readonly about?: ComponentChildren
  /** Left out if the result is unknown. */
  readonly end?: { readonly result: unknown } | { readonly error: unknown }
}

/** A tool call: arguments and result side by side. */
export function CallView({ name, raw, about, end }: Props) {
  const isError = end !== undefined && 'error' in end
  return (
    <div class={`call ${isError ? 'call-failed' : ''}`}>
      <div class="call-head">
        <span class="call-sign" aria-hidden="true">
          {isError ? '✗' : '⚙'}
        </span>
        <span class="hidden-text">calls </span>
        <strong class="mono">
          <SafeText text={name} />
        </strong>
        {isError && <span class="call-error-word">failed</span>}
        {about && <span class="dim">{about}</span>}
      </div>
      <div class={end === undefined ? 'call-sides call-single' : 'call-sides'}>
        <div>
          <div class="call-label">arguments</div>
          <Arguments raw={raw} />
        </div>
        {end !== undefined && (
          <div>
            <div class="call-label">{isError ? 'error' : 'result'}</div>
            {'error' in end ? <ErrorView error={end.error} /> : <Result value={end.result} />}
          </div>
        )}
      </div>
    </div>
  )
}

function Arguments({ raw }: { readonly raw: string }) {
  const value = jsonIn(raw)
  if (value && Object.keys(value).length === 0) return <span class="dim">none</span>
  return value ? <ValueView value={value} /> : <TextBlock text={raw} asMarkdown={false} />
}

const Result = ({ value }: { readonly value: unknown }) =>
  value === undefined ? (
    <span class="dim">nothing</span>
  ) : value === '' ? (
    <span class="dim">an empty text</span>
  ) : (
    <ResultView result={value} />
  )
