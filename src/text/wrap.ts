import { cells, displayWidth, isAscii } from './width.ts'

/** Rows of at most `width` columns (2 or more), broken between words where that is possible. The text must be visible. */
export const wrap = (text: string, width: number): string[] =>
  text.split('\n').flatMap((line) => (displayWidth(line) <= width ? [line] : wrapLine(line, width)))

function wrapLine(line: string, width: number): string[] {
  const rows: string[] = []
  let row = ''
  let used = 0
  // Each word with the spaces after it; those may hang over the edge, where nobody sees them.
  for (const word of line.match(/[^ ]* +|[^ ]+$/g) ?? []) {
    const bare = displayWidth(word.trimEnd())
    if (used + bare > width) {
      if (row !== '') rows.push(row.trimEnd())
      row = bare > width ? chop(word, width, rows) : word
      used = displayWidth(row)
    } else {
      row += word
      used += displayWidth(word)
    }
  }
  rows.push(row.trimEnd())
  return rows
}

/** Puts the rows that a word fills, which is wider than one, to the others, and returns the rest of it. */
function chop(word: string, width: number, rows: string[]): string {
  if (isAscii(word)) {
    const full = Math.ceil(word.length / width) - 1
    for (let row = 0; row < full; row++) rows.push(word.slice(row * width, (row + 1) * width))
    return word.slice(full * width)
  }
  let piece = ''
  let used = 0
  for (const cell of cells(word)) {
    if (used + cell.width > width && piece !== '') {
      rows.push(piece)
      piece = ''
      used = 0
    }
    piece += cell.text
    used += cell.width
  }
  return piece
}
