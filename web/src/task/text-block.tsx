import { useContext, useState } from 'preact/hooks'
import { visible } from '../parts/safe-text.tsx'
import { count } from '../text/quantities.ts'
import { Clamp } from './clamp.tsx'
import { Markdown } from './markdown/markdown.tsx'
import { AskedForAll } from './whole.tsx'

/** Longer texts are not parsed as Markdown, except on request. */
const MARKDOWN_CHARS = 50_000
/** The number of characters of a long text that are shown at first. */
const FIRST_CHARS = 20_000
/** Texts with more characters may be tall, so they are clamped. */
const CLAMP_CHARS = 2500
const CLAMP_PX = 720
/** A short text without any of these looks the same as Markdown and as plain text. */
const HAS_MARKDOWN = /[*_`#[<|>~]|\n[ \t]{0,8}(?:[-+]|\d{1,9}[.)])[ \t]|\n\n|https?:/

interface Props {
  readonly text: string
  /** Whether it is initially shown as Markdown. */
  readonly asMarkdown?: boolean
}

/** A text as Markdown or plain. Only the beginning of a long text is shown at first. */
export function TextBlock({ text, asMarkdown = true }: Props) {
  const [isMarkdown, setMarkdown] = useState(asMarkdown && text.length <= MARKDOWN_CHARS)
  const [most, setMost] = useState(useContext(AskedForAll) ? Infinity : FIRST_CHARS)
  const isLong = text.length > MARKDOWN_CHARS
  const shown = isLong ? text.slice(0, most) : text
  const body = isMarkdown ? <Markdown text={shown} /> : <div class="text-plain">{visible(shown)}</div>
  return (
    <div class="text-block">
      {shown.length > CLAMP_CHARS ? <Clamp mostPx={CLAMP_PX}>{body}</Clamp> : body}
      {shown.length < text.length && (
        <button type="button" class="small-button" onClick={() => setMost(10 * most)}>
          {count(text.length - shown.length)} more characters
        </button>
      )}
      {HAS_MARKDOWN.test(shown.slice(0, FIRST_CHARS)) && (
        <button
          type="button"
          class="small-button text-switch"
          aria-pressed={!isMarkdown}
          onClick={() => setMarkdown(!isMarkdown)}
          title={isMarkdown ? 'Show the text as it was written' : 'Show the text as Markdown'}
        >
          {isMarkdown ? 'plain' : 'Markdown'}
        </button>
      )}
    </div>
  )
}
