import { once } from 'node:events'
import { open } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { escapeControls } from '../text/escape-controls.ts'

/** Small pieces are joined up to this size before they are written. */
const CHUNK_CHARS = 256 * 1024

/** A destination of text with back-pressure. */
export interface TextOutput {
  /** Resolves when there is room for more. */
  write(text: string): Promise<void>
  end(): Promise<void>
}

/** Writes to stdout: unchanged for a program, with control characters escaped for a terminal. */
export function streamOutput(stream: Writable & { readonly isTTY?: boolean }): TextOutput {
  return gathering(
    async (text) => {
      if (!stream.write(stream.isTTY ? escapeControls(text) : text)) await once(stream, 'drain')
    },
    async () => {},
  )
}

export async function fileOutput(path: string): Promise<TextOutput> {
  const file = await open(path, 'r+')
  return gathering(
    async (text) => {
      await file.write(text)
    },
    () => file.close(),
  )
}

function gathering(send: (text: string) => Promise<void>, close: () => Promise<void>): TextOutput {
  let pieces: string[] = []
  let chars = 0
  const flush = async () => {
    const text = pieces.join('')
    pieces = []
    chars = 0
    if (text !== '') await send(text)
  }
  return {
    async write(text) {
      pieces.push(text)
      chars += text.length
      if (chars < CHUNK_CHARS) return
      await flush()
      // Reading from the store is synchronous, so yield to let signals be handled.
      await nextTurn()
    },
    async end() {
      try {
        await flush()
      } finally {
        await close()
      }
    },
  }
}
