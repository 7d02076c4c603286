import { ManyworldsError } from '../errors.ts'
import { decodeNumbers } from './numbers.ts'
import { type OpenedStep, opened, type PackedStep } from './packed-step.ts'
import { STEP_KINDS, type Step } from './step.ts'
import { listsIn } from './survey.ts'

/** The most list elements restored for one attempt. A few bytes can reference a long list many times. */
const MOST_ELEMENTS = 200_000_000
/** The limit if all steps are held at once. A list takes 8 bytes per element. */
export const MOST_ELEMENTS_AT_ONCE = 64_000_000
/** After this many links a list is copied, so that no chain gets longer. */
const MOST_LINKS = 256

/** A list of an earlier step: the first `keep` elements of `base`, then `added`. */
interface KeptList {
  readonly base: KeptList | undefined
  readonly keep: number
  readonly added: readonly unknown[]
  readonly length: number
  /** The length of the chain from here. */
  readonly links: number
}

/**
 * Restores the steps of one attempt, in order. It keeps only the lists that later steps may continue.
 */
export class StepUnpacker {
  readonly #mostElements: number
  /** Lists by step, then by path. */
  readonly #lists: (Map<string, KeptList> | undefined)[] = []
  #count = 0
  #elements = 0

  constructor(mostElements: number = MOST_ELEMENTS) {
    this.#mostElements = mostElements
  }

  /** Restores the next step. Throws if it is malformed: it may come from another machine. */
  next({ atUs, fields, kind, reward, usage, links, numbers, emptyPlaces = 0 }: OpenedStep): Step {
    this.#grow(emptyPlaces)
    if (typeof fields !== 'object' || fields === null) throw new Error('the body of the step is not an object')
    const lists = new Map<string, KeptList>()
    for (const [path, base, keep] of links ?? []) {
      const list = this.#continued(fields, path, base, keep)
      lists.set(JSON.stringify(path), list)
      setAt(fields, path, elementsOf(list))
    }
    this.#keepLists(fields, lists)
    for (const [path, buffer] of numbers ?? []) setAt(fields, path, decodeNumbers(buffer))
    return {
      index: this.#count++,
      atMs: atUs / 1000,
      kind: STEP_KINDS[kind],
      ...fields,
      ...(reward === null || reward === undefined ? {} : { reward }),
      ...(usage ? { usage } : {}),
    } as Step
  }

  #keepLists(fields: object, lists: Map<string, KeptList>): void {
    for (const [path, list] of listsIn(fields)) {
      const key = JSON.stringify(path)
      if (!lists.has(key)) lists.set(key, whole(list))
    }
    if (lists.size > 0) this.#lists[this.#count] = lists
  }

  #continued(fields: object, path: readonly string[], base: number, keep: number): KeptList {
    const earlier = this.#lists[base]?.get(JSON.stringify(path))
    const added = valueAt(fields, path)
    if (earlier === undefined || !Array.isArray(added) || keep > earlier.length)
      throw new Error(`the step continues a list that step ${base} does not have`)
    const length = keep + added.length
    this.#grow(length)
    const list = { base: earlier, keep, added, length, links: earlier.links + 1 }
    return list.links > MOST_LINKS ? whole(elementsOf(list)) : list
  }

  #grow(elements: number): void {
    this.#elements += elements
    if (this.#elements > this.#mostElements)
      throw tooLarge(`their lists have more than ${this.#mostElements} elements in total`)
  }
}

export const tooLarge = (why: string): ManyworldsError =>
  new ManyworldsError(
    'TRAJECTORY_TOO_LARGE',
    `the steps are too large to read at once: ${why}. Read them one by one: for await (const step of response.steps())`,
  )

const whole = (elements: unknown[]): KeptList => ({
  base: undefined,
  keep: 0,
  added: elements,
  length: elements.length,
  links: 0,
})

/** Fills in the elements from the end, because each link keeps only a prefix of its base. */
function elementsOf(list: KeptList): unknown[] {
  const elements = new Array<unknown>(list.length)
  let end = list.length
  for (let part: KeptList | undefined = list; part; part = part.base) {
    for (let i = part.keep; i < end; i++) elements[i] = part.added[i - part.keep]
    end = Math.min(end, part.keep)
  }
  return elements
}

/** Restores all steps of an attempt. */
export function unpackSteps(steps: readonly PackedStep[]): Step[] {
  const unpacker = new StepUnpacker(MOST_ELEMENTS_AT_ONCE)
  return steps.map((step) => unpacker.next(opened(step)))
}

function valueAt(object: unknown, path: readonly string[]): unknown {
  let value = object
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

function setAt(object: object, path: readonly string[], value: unknown): void {
  const holder = valueAt(object, path.slice(0, -1))
  const key = path.at(-1)
  // Replace own properties only: a hostile path must not reach a prototype.
  if (typeof holder !== 'object' || holder === null || key === undefined || !Object.hasOwn(holder, key))
    throw new Error(`the step has no value at ${path.join('.')}`)
  ;(holder as Record<string, unknown>)[key] = value
}
