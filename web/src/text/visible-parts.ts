export interface VisiblePart {
  readonly text: string
  readonly isControl: boolean
}

/** Controls except tab and line feed; bidi marks, invisible separators and tags, except the joiners that scripts and emoji need. */
const HIDDEN = /[[\p{Cc}\p{Cf}\u2028\u2029]--[\t\n\u200c\u200d]]/gv

/** Splits a text into parts to show as they are, and hidden characters by their codes: `<U+202E>`, and `<ESC>` for ANSI sequences. */
export function visibleParts(text: string): VisiblePart[] {
  const parts: VisiblePart[] = []
  let from = 0
  for (const { 0: found, index } of text.matchAll(HIDDEN)) {
    // CR LF is a normal line ending, so its CR is not shown.
    if (found === '\r' && text[index + 1] === '\n') {
      if (index > from) parts.push({ text: text.slice(from, index), isControl: false })
      from = index + 1
      continue
    }
    if (index > from) parts.push({ text: text.slice(from, index), isControl: false })
    parts.push({ text: nameOf(found), isControl: true })
    from = index + found.length
  }
  if (from < text.length || parts.length === 0) parts.push({ text: text.slice(from), isControl: false })
  return parts
}

const nameOf = (character: string) =>
  character === '\u001b' ? '<ESC>' : `<U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}>`
