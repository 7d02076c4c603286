import { visible } from '../parts/safe-text.tsx'
import { ScrollRegion } from '../parts/scroll-region.tsx'
import { Clamp } from './clamp.tsx'
import { ValueView } from './value-view.tsx'

interface ErrorLike {
  readonly name?: unknown
  readonly code?: unknown
  readonly message?: unknown
  readonly stack?: unknown
  readonly cause?: unknown
}

/** The most nested causes that are shown. */
const MOST_CAUSES = 8
/** The largest height of a message, which may be a whole HTML page: the stack below it must stay visible. */
const MESSAGE_PX = 130

/** An error, or another thrown value: message, stack and causes. */
export function ErrorView({ error, level = 0 }: { readonly error: unknown; readonly level?: number }) {
  if (typeof error !== 'object' || error === null || !('message' in error)) return <ValueView value={error} />
  const { name, code, message, stack, cause } = error as ErrorLike
  const behind = isRepeated(cause, error) ? (cause as ErrorLike).cause : cause
  const frames = typeof stack === 'string' ? framesOf(stack) : ''
  return (
    <div class="error-view">
      <Clamp mostPx={MESSAGE_PX}>
        <p class="error-message">
          {name !== undefined && <strong>{visible(String(name))}: </strong>}
          {visible(String(message))}
        </p>
      </Clamp>
      {code !== undefined && <p class="dim mono">{visible(String(code))}</p>}
      {frames !== '' && (
        <details open={level === 0 && frames.length < 1500}>
          <summary>Stack</summary>
          <ScrollRegion class="error-stack" label="Stack">
            <pre>{visible(frames)}</pre>
          </ScrollRegion>
        </details>
      )}
      {behind !== undefined && level < MOST_CAUSES && (
        <div class="error-cause">
          <div class="call-label">caused by</div>
          <ErrorView error={behind} level={level + 1} />
        </div>
      )}
    </div>
  )
}

/** Most stacks start with name and message, which are already shown. */
function framesOf(stack: string): string {
  const from = /^ +at /m.exec(stack)?.index
  return from === undefined ? '' : stack.slice(from)
}

/** The cause of a task's error is the value that the task threw, often with the same message, so it is not repeated. */
function isRepeated(cause: unknown, { name, message }: ErrorLike): boolean {
  const inner = (cause ?? {}) as ErrorLike
  return inner.message === message && inner.name === name
}
