import type { ComponentChildren } from 'preact'
import type { Message } from '../../../src/trajectory/step.ts'
import { SafeText, visible } from '../parts/safe-text.tsx'
import { count } from '../text/quantities.ts'
import { CallView } from './call-view.tsx'
import { ContentView, ResultView } from './content-view.tsx'

/** A message of a request. */
export function MessageView({ message }: { readonly message: Message }) {
  const { role, content, reasoning, calls = [], callId } = message
  if (role === 'system') return <Folded title="System prompt" size={sizeOf(content)} peek={content} content={content} />
  return (
    <Bubble role={role} about={callId && <SafeText text={callId} />}>
      <Reasoning text={reasoning} />
      {role === 'tool' ? <ResultView result={content} /> : <ContentView content={content} />}
      {calls.map(({ id, name, raw }) => (
        <CallView key={id} name={name} raw={raw} />
      ))}
    </Bubble>
  )
}

interface BubbleProps {
  readonly role: string
  readonly about?: ComponentChildren
  readonly children: ComponentChildren
}

/** A message of one speaker: the name above, a color at the left. */
export const Bubble = ({ role, about, children }: BubbleProps) => (
  <div class={`bubble bubble-${role.replaceAll(' ', '-')}`}>
    <div class="bubble-head">
      <span class="bubble-role">{role}</span>
      {about && <span class="dim bubble-about">{about}</span>}
    </div>
    {children}
  </div>
)

export function Reasoning({ text }: { readonly text: string | undefined }) {
  if (!text) return null
  return <Folded title="Reasoning" size={text.length} peek={text} content={text.trim()} />
}

interface FoldedProps {
  readonly title: string
  readonly size: number | undefined
  readonly peek: unknown
  readonly content: unknown
}

/** A folded text with a preview of its beginning. */
const Folded = ({ title, size, peek, content }: FoldedProps) => (
  <details class="folded">
    <summary>
      <span class="folded-title">{title}</span>
      {size !== undefined && <span class="dim folded-size">{count(size)} characters</span>}
      {typeof peek === 'string' && (
        <span class="dim cut folded-peek">{visible(peek.slice(0, 300).replace(/\s+/g, ' '))}</span>
      )}
    </summary>
    <div class="folded-inside">
      <ContentView content={content} />
    </div>
  </details>
)

const sizeOf = (content: unknown): number | undefined => (typeof content === 'string' ? content.length : undefined)
