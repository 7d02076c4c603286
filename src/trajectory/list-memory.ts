import { hash } from 'node:crypto'

/** A list that begins as that of an earlier step does: its first `keep` elements stand there, under the same path. */
export type ListLink = [path: readonly string[], base: number, keep: number]

/** Lists of an attempt that are remembered; a conversation with itself, a judge and a few sub-agents takes turns. */
const MOST_LISTS = 8
/** Shorter lists are not worth a link. */
const LEAST_CHARS = 128

interface KnownList {
  readonly path: string
  step: number
  readonly elements: string[]
}

/**
 * What the lists of an attempt's steps were, so that a conversation that every step repeats is sent and stored once.
 * Elements are compared by their content, because an agent may change a message that it has recorded.
 */
export class ListMemory {
  readonly #known: KnownList[] = []

  /** How much of the list an earlier step has; remembers it as the list of this step. */
  link(step: number, path: readonly string[], list: readonly unknown[]): ListLink | undefined {
    const texts = list.map((element) => JSON.stringify(element))
    const chars = texts.reduce((sum, { length }) => sum + length, 0)
    if (chars < LEAST_CHARS) return undefined
    const elements = texts.map(contentOf)
    const key = JSON.stringify(path)
    let base: KnownList | undefined
    let keep = 0
    for (const known of this.#known) {
      const shared = known.path === key ? sharedStart(known.elements, elements) : 0
      if (shared < keep || shared === 0) continue
      base = known
      keep = shared
    }
    const from = base?.step
    this.#remember(step, key, elements, base, keep)
    const kept = texts.slice(0, keep).reduce((sum, { length }) => sum + length, 0)
    return from === undefined || kept < LEAST_CHARS / 2 ? undefined : [path, from, keep]
  }

  #remember(step: number, path: string, elements: string[], base: KnownList | undefined, keep: number): void {
    if (base && keep === base.elements.length) {
      base.step = step
      for (let i = keep; i < elements.length; i++) base.elements.push(elements[i]!)
      return
    }
    if (this.#known.length === MOST_LISTS) this.#known.shift()
    this.#known.push({ path, step, elements })
  }
}

/** A short text is its own content; of a long one a hash is enough, and takes little memory. */
const contentOf = (text: string): string => (text.length <= 44 ? text : hash('sha256', text, 'base64'))

function sharedStart(a: readonly string[], b: readonly string[]): number {
  const most = Math.min(a.length, b.length)
  let shared = 0
  while (shared < most && a[shared] === b[shared]) shared++
  return shared
}
