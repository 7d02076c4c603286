/**
 * Cuts Markdown into pieces that are parsed one by one. The parser needs more than linear time for some texts (nested lists, many
 * asterisks, long tables), so a piece is short, and one that could take long is shown as plain text.
 */
export type Piece =
  | { readonly kind: 'markdown'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string; readonly about: string }
  | { readonly kind: 'plain'; readonly text: string }

/** A piece ends at the next boundary after this many characters. */
const PIECE_CHARS = 1000
const MOST_CHARS = 6000
/** The most characters that start or end a Markdown element. */
const MOST_MARKS = 300
/** The most pipes of tables and line feeds. */
const MOST_CELLS = 600
/** The deepest nesting of quotes and lists. */
const MOST_LEVELS = 10

const ITEM = /^(?:[-*+]|\d{1,9}[.)])[ \t]/
const TABLE_RULE = /^[ \t]*\|?[ \t]*:?-[-| :\t]*$/

export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = []
  let lines: string[] = []
  let chars = 0
  const end = () => {
    if (lines.some((line) => line.trim() !== '')) pieces.push(...checked(lines))
    lines = []
    chars = 0
  }
  const all = text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
  for (let place = 0; place < all.length; place++) {
    const line = all[place]!
    const fence = fenceIn(line)
    if (fence) {
      end()
      const close = closingLine(all, place + 1, fence.marks)
      pieces.push({ kind: 'code', text: all.slice(place + 1, close).join('\n'), about: fence.about })
      place = close
      continue
    }
    const isFree = line !== '' && line[0] !== ' ' && line[0] !== '\t'
    const isBoundary = isFree && (lines.at(-1)?.trim() === '' || ITEM.test(line) || line.startsWith('#'))
    if (isBoundary && chars > PIECE_CHARS) end()
    lines.push(line)
    chars += line.length + 1
  }
  end()
  return pieces
}

/** The start of a code block: three or more backticks or tildes, and the text after them, such as the language. */
function fenceIn(line: string): { readonly marks: string; readonly about: string } | undefined {
  const mark = line[0]
  if (mark !== '`' && mark !== '~') return undefined
  let length = 1
  while (line[length] === mark) length++
  const rest = line.slice(length)
  if (length < 3 || (mark === '`' && rest.includes('`'))) return undefined
  return { marks: line.slice(0, length), about: rest.trim() }
}

/** The line that closes a fence. A fence that is not closed extends to the end. */
function closingLine(lines: readonly string[], from: number, fence: string): number {
  for (let place = from; place < lines.length; place++) {
    const line = lines[place]!.trimEnd()
    if (line.length >= fence.length && line.length < 1000 && line === fence[0]!.repeat(line.length)) return place
  }
  return lines.length
}

/** Long tables are split between rows, and each part repeats the head. Drawn below each other, they look like one table. */
function checked(lines: readonly string[]): Piece[] {
  const text = lines.join('\n')
  if (isTame(text)) return [{ kind: 'markdown', text }]
  const rule = lines.findIndex((line, place) => isTableHead(lines[place - 1], line))
  if (rule < 1 || lines.length < 8) return [{ kind: 'plain', text }]
  const head = lines.slice(rule - 1, rule + 1)
  const half = Math.max(rule + 2, rule + Math.ceil((lines.length - rule) / 2))
  if (half >= lines.length || !lines[half]!.includes('|')) return [{ kind: 'plain', text }]
  return [...checked(lines.slice(0, half)), ...checked([...head, ...lines.slice(half)])]
}

const isTableHead = (head: string | undefined, rule: string): boolean =>
  head !== undefined && head.length < 500 && rule.length < 500 && head.includes('|') && TABLE_RULE.test(rule)

function isTame(text: string): boolean {
  if (text.length > MOST_CHARS) return false
  let marks = 0
  let cells = 0
  for (const letter of text) {
    if ('*_~[]!<>`&\\@'.includes(letter)) marks++
    else if ('|:\n'.includes(letter)) cells++
  }
  return marks <= MOST_MARKS && cells <= MOST_CELLS && text.split('\n').every((line) => levelsOf(line) <= MOST_LEVELS)
}

/** How many quotes and lists start at the beginning of a line: `> - 1. text` */
function levelsOf(line: string): number {
  let levels = 0
  for (const opening = /[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])/y; levels <= MOST_LEVELS && opening.test(line); )
    levels++
  return levels
}
