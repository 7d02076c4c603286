import { hash } from 'node:crypto'

/** A list that begins as that of an earlier step does: its first `keep` elements stand there, under the same path. */
export type ListLink = [path: readonly string[], base: number, keep: number]

/** Lists that are remembered for each path: a conversation, those of a judge and of a few sub-agents take turns there. */
const MOST_LISTS = 8
const MOST_PATHS = 64
/** Shorter lists are not worth a link. */
const LEAST_CHARS = 128

interface KnownList {
  step: number
  readonly elements: string[]
}

/**
 * What the lists of an attempt's steps were, so that a conversation that every step repeats is sent and stored once.
 * Elements are compared by their content, because an agent may change a message that it has recorded. Those that were
 * used least recently are forgotten first.
 */
export class ListMemory {
  /** By path; the most recently used last, in the map and in each list. */
  readonly #byPath = new Map<string, KnownList[]>()

  /** How much of the list an earlier step has; remembers it as the list of this step. */
  link(step: number, path: readonly string[], list: readonly unknown[]): ListLink | undefined {
    if (isShort(list)) return undefined
    const texts = list.map((element) => JSON.stringify(element))
    if (charsOf(texts, texts.length) < LEAST_CHARS) return undefined
    const elements = texts.map(contentOf)
    const known = this.#knownAt(JSON.stringify(path))
    const base = longestStart(known, elements)
    const keep = base ? sharedStart(base.elements, elements) : 0
    const from = base?.step
    if (base) moveToEnd(known, base)
    if (base && keep === base.elements.length) {
      base.step = step
      for (let i = keep; i < elements.length; i++) base.elements.push(elements[i]!)
    } else {
      known.push({ step, elements })
      if (known.length > MOST_LISTS) known.shift()
    }
    return from === undefined || charsOf(texts, keep) < LEAST_CHARS / 2 ? undefined : [path, from, keep]
  }

  #knownAt(path: string): KnownList[] {
    const known = this.#byPath.get(path) ?? []
    this.#byPath.delete(path)
    this.#byPath.set(path, known)
    if (this.#byPath.size > MOST_PATHS) this.#byPath.delete(this.#byPath.keys().next().value!)
    return known
  }
}

/** Undefined: none begins alike. */
function longestStart(known: readonly KnownList[], elements: readonly string[]): KnownList | undefined {
  let longest: KnownList | undefined
  let most = 0
  for (const list of known) {
    const shared = sharedStart(list.elements, elements)
    if (shared === 0 || shared < most) continue
    longest = list
    most = shared
  }
  return longest
}

/** Told by one text where that is quicker than one for each element: most lists that steps have are short ones of words. */
const isShort = (list: readonly unknown[]): boolean =>
  list.length < LEAST_CHARS &&
  list.every((element) => typeof element !== 'object') &&
  JSON.stringify(list).length - list.length - 1 < LEAST_CHARS

function sharedStart(a: readonly string[], b: readonly string[]): number {
  const most = Math.min(a.length, b.length)
  let shared = 0
  while (shared < most && a[shared] === b[shared]) shared++
  return shared
}

function moveToEnd(known: KnownList[], list: KnownList): void {
  known.splice(known.indexOf(list), 1)
  known.push(list)
}

/** Characters of the first `count` texts. */
function charsOf(texts: readonly string[], count: number): number {
  let chars = 0
  for (let i = 0; i < count; i++) chars += texts[i]!.length
  return chars
}

/** A short text is its own content; of a long one a hash is enough, and takes little memory. */
const contentOf = (text: string): string => (text.length <= 44 ? text : hash('sha256', text, 'base64'))
