import { useContext, useState } from 'preact/hooks'
import { visible } from '../parts/safe-text.tsx'
import { count, counted } from '../text/quantities.ts'
import { inlineText } from './inline-text.ts'
import { Shown } from './shown-value.ts'
import { AskedForAll } from './whole.tsx'
import './value-view.css'

const INLINE_CHARS = 80
/** The longest inline form of a list of texts and numbers, which may wrap. */
const LIST_CHARS = 400
const TEXT_CHARS = 2000
/** The number of fields or items that are shown at once. */
const PAGE = 100
/** The outer levels are opened automatically if they are small. */
const OPEN_LEVELS = 2
const OPEN_ITEMS = 30

/** A value of `readShown` as a tree. Objects and lists can be opened and closed; short ones are shown on one line. */
export function ValueView({ value, level = 0 }: { readonly value: unknown; readonly level?: number }) {
  if (typeof value === 'string') return <TextValue text={value} level={level} />
  if (typeof value !== 'object' || value === null || value instanceof Shown) return <Leaf value={value} />
  const short = inlineText(value, isFlat(value) ? LIST_CHARS : INLINE_CHARS)
  if (short !== undefined) return <code class="value-inline">{visible(short)}</code>
  return <Branch value={value} level={level} />
}

function Leaf({ value }: { readonly value: unknown }) {
  return <code class={`value-${value === null ? 'null' : typeof value}`}>{visible(inlineText(value, Infinity)!)}</code>
}

function TextValue({ text, level }: { readonly text: string; readonly level: number }) {
  const [isWhole, setWhole] = useState(useContext(AskedForAll))
  const shown = isWhole ? text : text.slice(0, TEXT_CHARS)
  return (
    <span class="value-text">
      {level === 0 ? visible(shown) : <code class="value-string">{visible(quoted(shown))}</code>}
      {shown.length < text.length && (
        <button type="button" class="small-button" onClick={() => setWhole(true)}>
          … {count(text.length - shown.length)} more characters
        </button>
      )}
    </span>
  )
}

/** Texts with line feeds are shown without quotes and escapes, because they are for reading. */
const quoted = (text: string) => (text.includes('\n') ? text : JSON.stringify(text))

function Branch({ value, level }: { readonly value: object; readonly level: number }) {
  const isList = Array.isArray(value) || ArrayBuffer.isView(value)
  const keys = isList ? undefined : Object.keys(value)
  const size = keys?.length ?? (value as readonly unknown[]).length
  const [isOpen, setOpen] = useState(level < OPEN_LEVELS && size <= OPEN_ITEMS)
  const [most, setMost] = useState(PAGE)
  const shown = Math.min(size, most)
  const at = (place: number): [name: string, value: unknown] => {
    const name = keys ? keys[place]! : String(place)
    return [name, (value as Record<string, unknown>)[name]]
  }
  const fields = () => (
    <ul>
      {Array.from({ length: shown }, (_, place) => {
        const [name, one] = at(place)
        return (
          <li key={name}>
            <span class="value-name">{visible(name)}</span> <ValueView value={one} level={level + 1} />
          </li>
        )
      })}
      {shown < size && (
        <li>
          <button type="button" class="small-button" onClick={() => setMost(10 * most)}>
            {count(size - shown)} more
          </button>
        </li>
      )}
    </ul>
  )
  // A small outermost value has no toggle.
  if (level === 0 && size <= OPEN_ITEMS) return <div class="value-branch value-top">{fields()}</div>
  return (
    <details class="value-branch" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {isList ? `list of ${counted(size, 'item')}` : counted(size, 'field')}
        {!isOpen && <span class="dim value-peek"> {visible(peek(value))}</span>}
      </summary>
      {isOpen && fields()}
    </details>
  )
}

const isFlat = (value: object): boolean =>
  ArrayBuffer.isView(value) ||
  (Array.isArray(value) && value.every((one) => typeof one !== 'object' || one === null || one instanceof Shown))

const peek = (value: object): string =>
  Array.isArray(value) || ArrayBuffer.isView(value) ? '' : Object.keys(value).slice(0, 6).join(', ')
