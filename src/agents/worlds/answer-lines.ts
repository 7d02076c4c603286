/** Longer lines are an error. */
const MAX_LINE_CHARS = 64 * 1024 * 1024

/** Splits chunks into lines of `number text`. Looks at every byte once. Python writes only ASCII. */
export class AnswerLines {
  readonly #take: (number: number, text: string) => void
  readonly #tooLong: (number: number) => void
  #rest: string[] = []
  #restChars = 0

  constructor(take: (number: number, text: string) => void, tooLong: (number: number) => void) {
    this.#take = take
    this.#tooLong = tooLong
  }

  readonly add = (chunk: Buffer): void => {
    const text = chunk.toString('latin1')
    let from = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      const part = text.slice(from, end)
      from = end + 1
      this.#line(this.#restChars === 0 ? part : this.#whole(part))
    }
    if (from === text.length) return
    this.#rest.push(from === 0 ? text : text.slice(from))
    this.#restChars += text.length - from
    if (this.#restChars > MAX_LINE_CHARS) this.#tooLong(Number.parseInt(this.#rest[0]!, 10))
  }

  #whole(part: string): string {
    const line = [...this.#rest, part].join('')
    this.#rest = []
    this.#restChars = 0
    return line
  }

  #line(line: string): void {
    const space = line.indexOf(' ')
    this.#take(Number(line.slice(0, space)), line.slice(space + 1))
  }
}
