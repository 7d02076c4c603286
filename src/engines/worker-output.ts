import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

/** A longer line is passed on in parts. */
const MOST_CHARS = 64 * 1024

/** Passes on what a stream says in whole lines, so that lines of several workers do not mix. */
export function readLines(stream: Readable | null, show: (lines: string) => void): void {
  const decoder = new StringDecoder()
  let rest = ''
  stream?.on('data', (bytes: Buffer) => {
    const text = rest + decoder.write(bytes)
    const end = text.length > MOST_CHARS ? text.length : text.lastIndexOf('\n') + 1
    rest = text.slice(end)
    if (end > 0) show(ended(text.slice(0, end)))
  })
  stream?.once('end', () => {
    rest += decoder.end()
    if (rest !== '') show(ended(rest))
  })
}

/** Each line behind the id of its worker. */
export const linesOf = (worker: string, lines: string): string => lines.replaceAll(/^(?=[\s\S])/gm, `[${worker}] `)

const ended = (text: string) => (text.endsWith('\n') ? text : `${text}\n`)
