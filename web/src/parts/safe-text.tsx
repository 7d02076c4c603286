import type { ComponentChildren } from 'preact'
import { visibleParts } from '../text/visible-parts.ts'

/** With more parts than this, codes are not colored, because an element for each would take seconds. */
const MOST_PARTS = 20_000

/** Text from outside. Characters that would hide or reorder others, such as bidi marks and ANSI escapes, are shown by their codes. */
export function SafeText({ text }: { readonly text: string }) {
  return <bdi>{visible(text)}</bdi>
}

export function visible(text: string): ComponentChildren {
  const parts = visibleParts(text)
  if (parts.length === 1 && !parts[0]!.isControl) return parts[0]!.text
  if (parts.length > MOST_PARTS) return parts.map(({ text }) => text).join('')
  return parts.map(({ text, isControl }, place) =>
    isControl ? (
      <span key={place} class="control">
        {text}
      </span>
    ) : (
      text
    ),
  )
}
