import { displayWidth } from '../text/width.ts'

/** Of a line without an end no more is remembered. */
const MAX_LENGTH = 4096
/** Colors are the only control sequences after which it is known where the cursor is. */
const ESCAPE = '\x1b'
const COLOR = /^\[[\d;:]*m/
/** Back, tabulator, down, form feed: the width of what follows says nothing about the column. */
const MOVES = /[\b\t\v\f]/

/**
 * What the process has written on the line where the cursor stands:
 * - `fresh`: nothing since the last line end;
 * - `unknown`: nobody has looked yet;
 * - `begun`: some text, and the cursor is somewhere behind it;
 * - `unclear`: the cursor was moved, or may wait at the right edge, where it must be left alone.
 */
export type LineState = 'fresh' | 'unknown' | 'begun' | 'unclear'

/** Follows what is written to a terminal, to know what there is on the cursor's line. */
export class CursorLine {
  /** Undefined: unknown. */
  #text: string | undefined

  wrote(chunk: string | Uint8Array): void {
    const text =
      typeof chunk === 'string' ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString()
    const end = text.lastIndexOf('\n')
    if (end !== -1) this.#text = text.slice(end + 1)
    // More than the limit is kept here, once, so that it is known to be too long.
    else if (text !== '' && (this.#text ?? '').length <= MAX_LENGTH) this.#text = (this.#text ?? '') + text
  }

  state(columns: number): LineState {
    if (this.#text === undefined) return 'unknown'
    if (this.#text.length > MAX_LENGTH) return 'unclear'
    const [start = '', ...sequences] = this.#text.split(ESCAPE)
    if (sequences.some((sequence) => !COLOR.test(sequence))) return 'unclear'
    const text = start + sequences.map((sequence) => sequence.replace(COLOR, '')).join('')
    if (MOVES.test(text)) return 'unclear'
    if (text === '') return 'fresh'
    // The cursor is in front of the text, which would be erased with what is behind it.
    if (text.endsWith('\r') && text.length > 1) return 'unclear'
    const width = displayWidth(text.slice(text.lastIndexOf('\r') + 1))
    return width > 0 && width % columns === 0 ? 'unclear' : 'begun'
  }
}
