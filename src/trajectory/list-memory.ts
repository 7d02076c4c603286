import { hash } from 'node:crypto'

/** The first `keep` elements of the list at `path` are those of the list at the same path of step `base`. */
export type ListLink = [path: readonly string[], base: number, keep: number]

/** How many lists are remembered per path: conversations of an agent, a judge and a few sub-agents may alternate there. */
const MOST_LISTS = 8
const MOST_PATHS = 64
/** Shorter lists are not worth a link. */
const LEAST_CHARS = 128

interface KnownList {
  step: number
  readonly elements: string[]
}

/**
 * Remembers the lists of an attempt's steps, so that a conversation that every step repeats is sent and stored once.
 * Elements are compared by content, because an agent may change a message after recording it. The least recently used
 * lists are forgotten first.
 */
export class ListMemory {
  /** By path; the most recently used last, both in the map and in each array. */
  readonly #byPath = new Map<string, KnownList[]>()

  /** Links the list to an earlier one with the longest common prefix, and remembers it. */
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

/** The known list with the longest common prefix; undefined if there is none. */
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

/** A fast check with a single JSON.stringify: most lists in steps are short lists of primitives. */
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

/** Long texts are compared by hash, to save memory. */
const contentOf = (text: string): string => (text.length <= 44 ? text : hash('sha256', text, 'base64'))
