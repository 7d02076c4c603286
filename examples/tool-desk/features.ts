import type { DeskObservation } from './desk.ts'

/**
 * What a policy sees of a call at the tool desk: the tool, the one before it, and how many numbers there are. The task has been
 * read up to the word that was looked up last. A lookup sees how far from there its word is, an operation the two words before, and
 * `submit` the next one. No feature says which call is right, and none has two operations in it, so what is learned of each
 * can be put together anew.
 */
export function deskFeatures({ text, calls, numbers }: DeskObservation, call: string): string[] {
  const words = text.split(' ')
  const last = calls.findLast((earlier) => earlier.startsWith(LOOKUP))
  const read = last === undefined ? -1 : words.indexOf(last.slice(LOOKUP.length))
  const [tool, word] = call.split(' ')
  const now = `${tool} after ${calls.at(-1)?.split(' ')[0]} with ${numbers.length}`
  if (word !== undefined) {
    const place = words.indexOf(word)
    return [`${now}, ${place === -1 ? 'not a word of the task' : place - read}`]
  }
  if (tool === 'submit') return [`${now} before ${words[read + 1]}`]
  return [now, ...words.slice(Math.max(read - 2, 0), Math.max(read, 0)).map((near) => `${tool} near ${near}`)]
}

const LOOKUP = 'lookup '
