import { hash } from 'node:crypto'

/** Numbers from 0 to 1 that follow from the texts alone: what a request gets does not depend on when it came. */
export function randomOf(...texts: readonly (string | number)[]): () => number {
  const key = texts.join('\n')
  let count = 0
  return () => Number.parseInt(hash('sha256', `${key}\n${count++}`).slice(0, 8), 16) / 2 ** 32
}
