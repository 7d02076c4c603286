const ROWS = 4
const COLUMNS = 64
const BLOCKS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/** A curve in the terminal that grows while it is watched; where there is no terminal, a line now and then, and the curve at the end. */
export class LiveCurve {
  readonly #most: number
  readonly #isLive = process.stdout.isTTY === true && process.env.TERM !== 'dumb' && !process.env.CI
  readonly #values: number[] = []
  #drawn = 0

  /** `most`: how many values there will be. */
  constructor(most: number) {
    this.#most = most
  }

  add(value: number): void {
    this.#values.push(value)
    if (this.#isLive) this.#draw()
    else if (this.#values.length % (this.#most / 4) === 0)
      console.log(`  update ${this.#values.length} of ${this.#most}: ${(100 * value).toFixed(0)} % solved`)
  }

  end(): void {
    if (!this.#isLive) this.#draw()
  }

  /** A line that the next one replaces. */
  say(line: string): void {
    if (this.#isLive) process.stdout.write(`\r\x1b[2K${line === '' ? '' : `${line} …`}`)
  }

  /** Over the one that is there. */
  #draw(): void {
    if (this.#drawn > 0) process.stdout.write(`\x1b[${this.#drawn}A`)
    const lines = this.#lines()
    for (const line of lines) process.stdout.write(`${this.#isLive ? '\x1b[2K' : ''}${line}\n`)
    if (this.#isLive) this.#drawn = lines.length
  }

  #lines(): string[] {
    const width = Math.min(COLUMNS, this.#most, (process.stdout.columns ?? 80) - 12)
    const columns = Array.from({ length: width }, (_, column) => this.#mean(column, width))
    const rows = Array.from({ length: ROWS }, (_, fromTop) => {
      const floor = ROWS - 1 - fromTop
      const label = fromTop === 0 ? '100 %' : floor === 0 ? '0 %' : ''
      return `${label.padStart(7)} │${columns.map((value) => block(value, floor)).join('')}`.trimEnd()
    })
    const at = this.#values.length
    const now = at === 0 ? '' : `, ${(100 * this.#values.at(-1)!).toFixed(0)} % of the episodes solved`
    return [...rows, `        └ ${at} of ${this.#most} updates${now}`]
  }

  #mean(column: number, width: number): number | undefined {
    const from = Math.floor((column * this.#most) / width)
    const values = this.#values.slice(from, Math.floor(((column + 1) * this.#most) / width))
    return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length
  }
}

/** The part of a column that is in one row: the lowest row shows something even of nothing. */
function block(value: number | undefined, floor: number): string {
  if (value === undefined) return ' '
  const eighths = Math.round(value * ROWS * 8) - floor * 8
  return BLOCKS[Math.max(floor === 0 ? 1 : 0, Math.min(8, eighths))]!
}
