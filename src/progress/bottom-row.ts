import { fstatSync } from 'node:fs'
import { CursorLine, type LineState } from './cursor-line.ts'
import { interceptWrites } from './intercept-writes.ts'
import { LeavingProcess } from './leaving-process.ts'
import { surviveErrors } from './survive-errors.ts'
import { DOWN, ERASE_BELOW, RESET_STYLE, RESTORE, SAVE, UP, WRAP_OFF, WRAP_ON } from './terminal-codes.ts'

/** How long a program at the other end of a pipe may take to write to the terminal. */
const PIPE_MS = 80
const REFRESH_MS = 100
/** The shortest time between two redraws after output. Without it, each line of output would cause a redraw. */
const REDRAW_MS = 20
const DEFAULT_COLUMNS = 80
/**
 * The widest row below the cursor. If such a row is wrapped because the terminal gets narrower, some terminals (xterm.js,
 * and so VS Code) lose the position of the cursor above it. A row on the cursor's own line has no such problem.
 */
const COLUMNS_BELOW = 38

/**
 * A row at the bottom of a terminal, below everything that the process prints.
 *
 * The cursor always stays where the process prints next: at the start of the row or, if the last line is unfinished,
 * after its text, with the row below. So output of the process appears in the right place. The row is erased with
 * "erase from the cursor on", however the terminal has wrapped it after a resize. The cursor is never hidden, so a
 * crash cannot leave it hidden.
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

  /**
   * `text` returns a text of at most `columns` columns. `printers`: other streams of the process that may be shown on
   * this terminal.
   */
  constructor(
    terminal: NodeJS.WriteStream,
    printers: readonly NodeJS.WriteStream[],
    text: (columns: number) => string,
  ) {
    this.#terminal = terminal
    this.#printers = [terminal, ...printers.filter((stream) => stream.isTTY && stream !== terminal)]
    this.#pipes = printers.filter((stream) => !stream.isTTY && isPipe(stream))
    this.#text = text
    // Saved before `write` is intercepted.
    const write = terminal.write
    this.#write = (text) => void write.call(terminal, text)
    surviveErrors(terminal)
  }

  /** The row is drawn at the first refresh, so that it does not flash for runs that end at once. */
  show(): void {
    if (this.#release) return
    // Writes while the row was hidden were not observed.
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

  /** Prints whole lines above the row. */
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

  /**
   * The program at the other end of the pipe may print the text on this terminal a little later, so the row is hidden for
   * a while.
   */
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
    // The first column is for the cursor. The last one stays free, because some terminals treat a full row as wrapped.
    const columns = Math.max(1, this.#columns - 2)
    const text = ` ${this.#text(line === 'begun' ? Math.min(COLUMNS_BELOW, columns) : columns)}`
    if (this.#drawn?.text === text && this.#drawn.line === line) return
    // Most terminals save a position on the screen, not in the text, so nothing may scroll between SAVE and RESTORE.
    const makeRoom = line === 'fresh' ? '' : DOWN + UP
    const start = line === 'begun' ? '\r\n' : this.#freshLine()
    // If the terminal was resized and the event has not arrived yet, the terminal cuts the row instead of wrapping it.
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
    // Typed keys may have moved the cursor away from the start of the row, so it is moved back first. The erase starts at
    // column 1, after a blank: tmux would treat an erase from column 0 as clearing the screen, and keep a copy in its
    // history.
    return this.#drawn.line === 'fresh' ? `\r ${ERASE_BELOW}\r` : ERASE_BELOW
  }

  /**
   * Moves to an empty line. If the state of the line is unknown, prints a row of blanks, which wraps to the next row
   * unless the line was empty.
   */
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
