import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

/** A longer line is passed on in parts. */
const MOST_CHARS = 64 * 1024

export interface LineSplitter {
  add(text: string): void
  /** Passes on an unfinished line. */
  end(): void
}

/** Passes on text in whole lines, so that lines of several workers do not mix. */
export function lineSplitter(show: (lines: string) => void): LineSplitter {
  let rest = ''
  return {
    add(text) {
      const end = rest.length + text.length > MOST_CHARS ? text.length : text.lastIndexOf('\n') + 1
      const lines = end > 0 ? rest + text.slice(0, end) : ''
      rest = end > 0 ? text.slice(end) : rest + text
      if (lines !== '') show(ended(lines))
    },
    end() {
      const last = rest
      rest = ''
      if (last !== '') show(ended(last))
    },
  }
}

/** Passes on what a stream says in whole lines. */
export function readLines(stream: Readable | null, show: (lines: string) => void): void {
  const decoder = new StringDecoder()
  const lines = lineSplitter(show)
  stream?.on('data', (bytes: Buffer) => lines.add(decoder.write(bytes)))
  stream?.once('end', () => {
    lines.add(decoder.end())
    lines.end()
  })
}

/** Each line behind the id of its worker. */
export const linesOf = (worker: string, lines: string): string => lines.replaceAll(/^(?=[\s\S])/gm, `[${worker}] `)

const ended = (text: string) => (text.endsWith('\n') ? text : `${text}\n`)
