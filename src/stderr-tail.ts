import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

/** Enough for a stack trace; messages quote it. */
const TAIL_CHARS = 4000

interface TailOptions {
  readonly chars?: number
  /** Called with the tail so far whenever there is more of it. */
  readonly heard?: (tail: string) => void
}

/** Reads the stderr of a process and keeps the end of it, for the error message if the process fails. */
export function stderrTail(
  stderr: Readable | null | undefined,
  { chars = TAIL_CHARS, heard }: TailOptions = {},
): () => string {
  // Chunks may end within a character.
  const decoder = new StringDecoder('utf8')
  let tail = ''
  stderr?.on('error', () => {})
  stderr?.on('data', (chunk: Buffer) => {
    tail = (tail + decoder.write(chunk)).slice(-chars)
    heard?.(tail)
  })
  return () => tail.trim()
}
