import { isPart, onlyText, type Part } from '../../../src/text/content-part.ts'
import { jsonIn } from '../../../src/text/json-in.ts'
import { visible } from '../parts/safe-text.tsx'
import { bytes } from '../text/quantities.ts'
import { inlineText } from './inline-text.ts'
import { TextBlock } from './text-block.tsx'
import { ValueView } from './value-view.tsx'

/** The content of a message: a text, a list of parts of which some are texts, or any value. */
export function ContentView({
  content,
  asMarkdown = true,
}: {
  readonly content: unknown
  readonly asMarkdown?: boolean
}) {
  if (content === null || content === undefined || content === '') return null
  if (typeof content === 'string') return <TextBlock text={content} asMarkdown={asMarkdown} />
  if (Array.isArray(content) && content.length > 0 && content.every(isPart))
    return (
      <>
        {content.map((part) =>
          typeof part.text === 'string' ? (
            <TextBlock text={part.text} asMarkdown={asMarkdown} />
          ) : (
            <OtherPart part={part} />
          ),
        )}
      </>
    )
  return <ValueView value={content} />
}

/** The result or the arguments of a tool. JSON in a text is parsed. */
export function ResultView({ result }: { readonly result: unknown }) {
  const text = typeof result === 'string' ? result : onlyText(result)
  const value = text === undefined ? undefined : jsonIn(text)
  if (value !== undefined) return <ValueView value={value} />
  return <ContentView content={text ?? result} asMarkdown={false} />
}

/** A part that is not a text, such as an image or a file. Its content is never loaded. */
function OtherPart({ part }: { readonly part: Part }) {
  const short = inlineText(part, 100)
  if (short !== undefined) return <code>{visible(short)}</code>
  const size = JSON.stringify(part, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)).length
  return (
    <details>
      <summary>
        {visible(part.type.slice(0, 100))} <span class="dim">{bytes(size)}</span>
      </summary>
      <ValueView value={part} />
    </details>
  )
}
