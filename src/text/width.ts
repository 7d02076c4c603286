import { stripVTControlCharacters } from 'node:util'

const PRINTABLE_ASCII = /^[ -~]*$/
/** Characters that are drawn in two columns: Hangul, CJK, kana, full-width forms, and emoji. */
const WIDE =
  /^[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u
/** Combining marks and other characters without a width. */
const NO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]$/u
/** Graphemes drawn as one emoji, two columns wide: sequences with joiners or skin tones, flags, and characters with U+FE0F. */
const PICTURE = /\ufe0f|\p{Emoji_Presentation}/u

/** Real text has fewer code units per column: a family emoji has 12 in two. */
const UNITS_PER_COLUMN = 20

const segmenter = new Intl.Segmenter()

/** Whether the text is printable ASCII, in which each character is one column wide. */
export const isAscii = (text: string): boolean => PRINTABLE_ASCII.test(text)

export interface Cell {
  readonly text: string
  readonly width: number
}

/** The graphemes of a text, each with its width on a terminal: 0, 1 or 2 columns. */
export function cells(text: string): Cell[] {
  if (isAscii(text)) return Array.from(text, (character) => ({ text: character, width: 1 }))
  return Array.from(segmenter.segment(text), ({ segment }) => segment)
    .flatMap((segment) => (cellWidth(segment) > 2 ? [...segment] : [segment]))
    .map((segment) => ({ text: segment, width: cellWidth(segment) }))
}

/** The width of a text on a terminal, in columns. Color codes have none; other control characters must be escaped before. */
export function displayWidth(text: string): number {
  if (isAscii(text)) return text.length
  if (text.includes('\x1b')) return displayWidth(stripVTControlCharacters(text).replaceAll('\x1b', ''))
  let width = 0
  for (const { segment } of segmenter.segment(text)) width += cellWidth(segment)
  return width
}

function cellWidth(segment: string): number {
  if (PICTURE.test(segment)) return 2
  let width = 0
  for (const character of segment) width += NO_WIDTH.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return width
}

/** Pads with spaces on the right, or on the left, to this width. */
export const padEnd = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - displayWidth(text)))
export const padStart = (text: string, width: number): string =>
  ' '.repeat(Math.max(0, width - displayWidth(text))) + text

/** Cuts a text to this width; an ellipsis marks the cut. */
export function cut(text: string, width: number): string {
  // Do not measure a huge text to its end.
  const measured = text.slice(0, UNITS_PER_COLUMN * width)
  if (measured === text && displayWidth(text) <= width) return text
  let [kept, used] = ['', 0]
  for (const cell of cells(measured)) {
    if (used + cell.width > width - 1) break
    kept += cell.text
    used += cell.width
  }
  return width < 1 ? '' : `${kept.trimEnd()}…`
}
