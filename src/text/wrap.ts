import { cells, displayWidth, isAscii } from './width.ts'

interface WrapOptions {
  /** A word wider than a row is chopped, or kept whole on a row of its own. Default: chopped. Painted texts must be kept. */
  readonly longWords?: 'chop' | 'keep'
}

/** Rows of at most `width` columns (2 or more), broken between words where possible. */
export const wrap = (text: string, width: number, { longWords = 'chop' }: WrapOptions = {}): string[] =>
  text.split('\n').flatMap((line) => (displayWidth(line) <= width ? [line] : wrapLine(line, width, longWords)))

function wrapLine(line: string, width: number, longWords: 'chop' | 'keep'): string[] {
  const rows: string[] = []
  let row = ''
  let used = 0
  // Each word with the spaces after it; those may exceed the width, since they are trimmed.
  for (const word of line.match(/[^ ]* +|[^ ]+$/g) ?? []) {
    const bare = displayWidth(word.trimEnd())
    if (used + bare > width) {
      if (row !== '') rows.push(row.trimEnd())
      row = bare > width && longWords === 'chop' ? chop(word, width, rows) : word
      used = displayWidth(row)
    } else {
      row += word
      used += displayWidth(word)
    }
  }
  rows.push(row.trimEnd())
  return rows
}

/** Adds to `rows` the full rows of a word that is wider than one row; returns the rest of it. */
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
