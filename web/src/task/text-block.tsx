import { useContext, useState } from 'preact/hooks'
import { visible } from '../parts/safe-text.tsx'
import { count } from '../text/quantities.ts'
import { Clamp } from './clamp.tsx'
import { Markdown } from './markdown/markdown.tsx'
import { AskedForAll } from './whole.tsx'

/** Longer texts are not parsed unless asked for. */
const MARKDOWN_CHARS = 50_000
/** The beginning that is shown of a long text. */
const FIRST_CHARS = 20_000
/** Texts that may be high are cut at a height. */
const CLAMP_CHARS = 2500
const CLAMP_PX = 720
/** Shorter texts without any of these look the same either way. */
const HAS_MARKDOWN = /[*_`#[<|>~]|\n[ \t]{0,8}(?:[-+]|\d{1,9}[.)])[ \t]|\n\n|https?:/

interface Props {
  readonly text: string
  /** Whether it is shown as Markdown at first. */
  readonly asMarkdown?: boolean
}

/** What somebody said: as Markdown or plain, and long texts by their beginning. */
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
