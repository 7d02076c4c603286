import { displayWidth } from '../text/width.ts'

/** The most characters of an unfinished line that are remembered. */
const MAX_LENGTH = 4096
/** Colors are the only control sequences after which the position of the cursor is known. */
const ESCAPE = '\x1b'
const COLOR = /^\[[\d;:]*m/
/** Backspace, tab, vertical tab, form feed: after these, the column of the cursor is unknown. */
const MOVES = /[\b\t\v\f]/

/**
 * What the process has written on the line of the cursor:
 * - `fresh`: nothing since the last line feed;
 * - `unknown`: nothing was observed yet;
 * - `begun`: some text, and the cursor is after it;
 * - `unclear`: the cursor was moved, or may be at the right edge with a pending wrap. It must not be touched.
 */
export type LineState = 'fresh' | 'unknown' | 'begun' | 'unclear'

/** Observes what is written to a terminal, to know the state of the cursor's line. */
export class CursorLine {
  /** Undefined: unknown. */
  #text: string | undefined

  wrote(chunk: string | Uint8Array): void {
    const text =
      typeof chunk === 'string' ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString()
    const end = text.lastIndexOf('\n')
    if (end !== -1) this.#text = text.slice(end + 1)
    // The text may exceed the limit once, which marks the line as too long.
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
    // After a carriage return the cursor is before the text, which "erase from the cursor on" would erase.
    if (text.endsWith('\r') && text.length > 1) return 'unclear'
    const width = displayWidth(text.slice(text.lastIndexOf('\r') + 1))
    return width > 0 && width % columns === 0 ? 'unclear' : 'begun'
  }
}
