import { fstatSync } from 'node:fs'
import { CursorLine, type LineState } from './cursor-line.ts'
import { interceptWrites } from './intercept-writes.ts'
import { LeavingProcess } from './leaving-process.ts'
import { surviveErrors } from './survive-errors.ts'
import { DOWN, ERASE_BELOW, RESET_STYLE, RESTORE, SAVE, UP, WRAP_OFF, WRAP_ON } from './terminal-codes.ts'

/** How long a program at the other end of a pipe may take to write to the terminal. */
const PIPE_MS = 80
const REFRESH_MS = 100
/** After output the row is redrawn at once, but not more often than this: a flood of output must not be doubled. */
const REDRAW_MS = 20
const DEFAULT_COLUMNS = 80
/**
 * The most of a row that stands below the cursor. If it gets wrapped when the terminal is made narrower, some terminals
 * (xterm.js, so VS Code's) lose the place of the cursor above it. On the cursor's own row they do not.
 */
const COLUMNS_BELOW = 38

/**
 * A row at the bottom of a terminal, below all that the process prints.
 *
 * The cursor always stays where the process would print next: at the start of the row or, when a line has been begun
 * and not ended, behind its text, with the row below. So whatever is printed lands in its place; to erase is always
 * "from the cursor on", however the terminal has wrapped the row after a resize; and the cursor never has to be
 * hidden, which is why it cannot get lost.
 */
export class BottomRow {
  readonly #terminal: NodeJS.WriteStream
  readonly #printers: readonly NodeJS.WriteStream[]
  readonly #text: (columns: number) => string
  readonly #write: (text: string) => void
  readonly #leaving = new LeavingProcess({ dying: () => this.#erase(), gone: () => this.hide() })
  readonly #pipes: readonly NodeJS.WriteStream[]
  #line = new CursorLine()
  #drawn: { readonly text: string; readonly line: LineState } | undefined
  #drawnAt = 0
  #quietUntil = 0
  #refresh: NodeJS.Timeout | undefined
  #redraw: NodeJS.Timeout | undefined
  #release: (() => void)[] | undefined

  /** `text` is at most so many columns wide. `printers` are other streams of the process that may end on this terminal. */
  constructor(
    terminal: NodeJS.WriteStream,
    printers: readonly NodeJS.WriteStream[],
    text: (columns: number) => string,
  ) {
    this.#terminal = terminal
    this.#printers = [terminal, ...printers.filter((stream) => stream.isTTY && stream !== terminal)]
    this.#pipes = printers.filter((stream) => !stream.isTTY && isPipe(stream))
    this.#text = text
    // Taken now, before it is intercepted.
    const write = terminal.write
    this.#write = (text) => void write.call(terminal, text)
    surviveErrors(terminal)
  }

  /** First drawn at the first refresh, so that what is over at once does not flash. */
  show(): void {
    if (this.#release) return
    // Writes since the last time were not followed.
    this.#line = new CursorLine()
    this.#release = [
      ...this.#printers.map((stream) => interceptWrites(stream, this.#printing)),
      ...this.#pipes.map((stream) => interceptWrites(stream, this.#piping)),
    ]
    this.#terminal.on('resize', this.#resized)
    this.#leaving.watch()
    this.#refresh = setInterval(() => this.#draw(), REFRESH_MS).unref()
  }

  hide(): void {
    this.#erase()
    clearInterval(this.#refresh)
    clearTimeout(this.#redraw)
    this.#redraw = undefined
    this.#leaving.unwatch()
    this.#terminal.off('resize', this.#resized)
    for (const release of this.#release ?? []) release()
    this.#release = undefined
  }

  /** Puts whole lines above the row. */
  print(text: string): void {
    this.#erase()
    this.#write(`${this.#freshLine()}${text}\n`)
    this.#line.wrote('\n')
    this.#drawSoon()
  }

  readonly #printing = (chunk: string | Uint8Array, write: () => boolean): boolean => {
    this.#erase()
    this.#line.wrote(chunk)
    try {
      return write()
    } finally {
      this.#drawSoon()
    }
  }

  /** Somebody at the other end may write it to this terminal, in their own time: the row makes way for a while. */
  readonly #piping = (_chunk: string | Uint8Array, write: () => boolean): boolean => {
    this.#erase()
    this.#line = new CursorLine()
    this.#quietUntil = performance.now() + PIPE_MS
    return write()
  }

  readonly #resized = (): void => {
    this.#erase()
    this.#draw()
  }

  #drawSoon(): void {
    if (!this.#release) return
    const wait = this.#drawnAt + REDRAW_MS - performance.now()
    if (wait <= 0) this.#draw()
    else this.#redraw ??= setTimeout(() => this.#draw(), wait).unref()
  }

  #draw(): void {
    clearTimeout(this.#redraw)
    this.#redraw = undefined
    if (performance.now() < this.#quietUntil) return
    const line = this.#line.state(this.#columns)
    if (line === 'unclear') return this.#erase()
    // The first column is left for the cursor, the last one free: a full row counts as wrapped on some terminals.
    const columns = Math.max(1, this.#columns - 2)
    const text = ` ${this.#text(line === 'begun' ? Math.min(COLUMNS_BELOW, columns) : columns)}`
    if (this.#drawn?.text === text && this.#drawn.line === line) return
    // Most terminals restore a place on the screen, not in the text: nothing may scroll in between.
    const makeRoom = line === 'fresh' ? '' : DOWN + UP
    const start = line === 'begun' ? '\r\n' : this.#freshLine()
    // We may not have heard of a new width yet: then the terminal cuts the row.
    const row = `${WRAP_OFF}${RESET_STYLE}${text}${WRAP_ON}`
    this.#write(`${this.#eraser()}${makeRoom}${SAVE}${start}${row}${RESTORE}`)
    this.#drawn = { text, line }
    this.#drawnAt = performance.now()
  }

  #erase(): void {
    if (this.#drawn) this.#write(this.#eraser())
    this.#drawn = undefined
  }

  #eraser(): string {
    if (!this.#drawn) return ''
    // Keys that were pressed meanwhile have moved the cursor away from the start of our row.
    // Column 0 is blank, and not erased from there: tmux would take that for the clearing of a screen, and keep a copy.
    return this.#drawn.line === 'fresh' ? `\r ${ERASE_BELOW}\r` : ERASE_BELOW
  }

  /** Ends a line that was begun. Where that is not known: a row full of blanks ends on the same row only if that was empty. */
  #freshLine(): string {
    const line = this.#line.state(this.#columns)
    if (line === 'unknown') return `${' '.repeat(this.#columns)}\r${ERASE_BELOW}`
    return line === 'fresh' ? '' : '\n'
  }

  get #columns(): number {
    return this.#terminal.columns || DEFAULT_COLUMNS
  }
}

function isPipe(stream: NodeJS.WriteStream): boolean {
  try {
    return fstatSync((stream as unknown as { fd: number }).fd).isFIFO()
  } catch {
    return false
  }
}
