import { MAX_VALUE_BYTES, NotPackable, packBytes, tooLarge } from '../protocol/pack.ts'
import { readBytes, readJson } from '../protocol/read-packed.ts'
import { lastEmptyPlaces } from '../protocol/scan-v8.ts'
import type { ListLink, ListMemory } from './list-memory.ts'
import { encodeNumbers, MOST_NUMBERS } from './numbers.ts'
import { STEP_KINDS, type Step, type StepContent } from './step.ts'
import { survey } from './survey.ts'
import { USAGE_KEYS, type Usage } from './usage.ts'

/**
 * A step on its way, and in the store. What the store has columns for stands beside the rest, which is `body`: JSON or,
 * where that would not bring it back, the bytes of v8. A tuple, and its end is left out where there is nothing: most steps
 * are the first two or four of these.
 */
export type PackedStep = [
  atUs: number,
  body: string | Uint8Array,
  /** Place in `STEP_KINDS`. */
  kind?: number,
  reward?: number | null,
  usage?: Usage | null,
  /** Of the policy that chose the action or gave the completion. */
  version?: number | null,
  /** Lists of which `body` has only what was added to an earlier step's. */
  links?: readonly ListLink[] | null,
  /** Arrays of numbers, for which `body` has null: see `numbers.ts`. */
  numbers?: readonly PackedNumbers[] | null,
]

/** A buffer and no Uint8Array, which in a message always holds a value of v8's (see `portable.ts`). */
export type PackedNumbers = [path: readonly string[], numbers: ArrayBuffer]

/** Throws `NotPackable` if the step cannot travel. */
export function packStep(step: Step, memory: () => ListMemory): PackedStep {
  const { index, atMs, kind } = step
  const reward = isPlainNumber(step.reward) ? step.reward : null
  const usage = isPlainUsage(step.usage) ? step.usage : null
  const body = bodyOf(step, reward !== null, usage !== null)
  const { exact, lists, numbers } = survey(body)
  const links: ListLink[] = []
  let rest = body
  for (const [path, list] of exact ? lists : []) {
    const link = memory().link(index, path, list)
    if (link === undefined) continue
    links.push(link)
    rest = withValueAt(rest, path, list.slice(link[2]))
  }
  for (const [path, array] of numbers) {
    if (array.length > MOST_NUMBERS) throw new NotPackable(tooMany(path, array.length))
    rest = withValueAt(rest, path, null)
  }
  const packed: PackedStep = [
    Math.round(atMs * 1000),
    exact ? jsonOf(rest) : packBytes(rest),
    STEP_KINDS.indexOf(kind),
    reward,
    usage,
    versionOf(step),
    links.length === 0 ? null : links,
    numbers.length === 0 ? null : numbers.map(([path, array]): PackedNumbers => [path, encodeNumbers(array)]),
  ]
  const size = packedStepSize(packed)
  if (size > MAX_VALUE_BYTES) throw new NotPackable(tooLarge(`${size} bytes`))
  return trimmed(packed)
}

const tooMany = (path: readonly string[], count: number) =>
  `\`${path.join('.')}\` has ${count} numbers, and at most ${MOST_NUMBERS} can be recorded in one array`

/** The only way in which JSON can fail here is its length. */
function jsonOf(value: object): string {
  try {
    return JSON.stringify(value)
  } catch {
    throw new NotPackable(tooLarge(`more than ${MAX_VALUE_BYTES} bytes`))
  }
}

/**
 * The fields that have no place of their own. Copied one by one: an object that properties were deleted from is slow
 * in everything that comes after, and this is done for every step.
 */
function bodyOf(step: Step, hasReward: boolean, hasUsage: boolean): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  for (const key of Object.keys(step)) {
    if (key === 'index' || key === 'atMs' || key === 'kind') continue
    if ((key === 'reward' && hasReward) || (key === 'usage' && hasUsage)) continue
    body[key] = step[key as keyof Step]
  }
  return body
}

/** The rough size of a packed step in bytes. */
export function packedStepSize([, body, , , , , links, numbers]: PackedStep): number {
  let size = body.length + 16
  if (links) size += 32 * links.length
  if (numbers) for (const [, buffer] of numbers) size += buffer.byteLength + 32
  return size
}

/** Throws if a step that comes from another process has a body that cannot be read. */
export function checkStep(step: PackedStep): void {
  const { fields } = opened(step)
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) throw new TypeError('a step that is none')
}

/** A packed step whose body was read. */
export interface OpenedStep {
  readonly atUs: number
  readonly fields: unknown
  readonly kind: number
  readonly reward: number | null | undefined
  readonly usage: Usage | null | undefined
  readonly links: readonly ListLink[] | null | undefined
  readonly numbers: readonly PackedNumbers[] | null | undefined
  /** Empty places in its arrays, which take memory as others do. */
  readonly emptyPlaces?: number
}

export const opened = ([atUs, body, kind = 0, reward, usage, , links, numbers]: PackedStep): OpenedStep => {
  const fields: unknown = typeof body === 'string' ? readJson(body) : readBytes(body)
  const emptyPlaces = typeof body === 'string' ? 0 : lastEmptyPlaces()
  return { atUs, fields, kind, reward, usage, links, numbers, emptyPlaces }
}

const isPlainNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && !Object.is(value, -0)

const isPlainUsage = (usage: unknown): usage is Usage =>
  typeof usage === 'object' &&
  usage !== null &&
  Object.getPrototypeOf(usage) === Object.prototype &&
  Object.entries(usage).every(([key, value]) => USAGE_KEYS.includes(key as keyof Usage) && isPlainNumber(value))

function versionOf(step: StepContent): number | null {
  const version = step.kind === 'action' || step.kind === 'model' ? step.policy?.version : undefined
  return Number.isSafeInteger(version) && version! >= 0 ? version! : null
}

/** Without what most steps do not have at the end. */
function trimmed(packed: PackedStep): PackedStep {
  let length = packed.length
  while (length > 2 && (packed[length - 1] === null || (length === 3 && packed[2] === 0))) length--
  return packed.slice(0, length) as PackedStep
}

/** A copy in which only what lies on the path is new. */
function withValueAt(
  object: Record<string, unknown>,
  path: readonly string[],
  value: unknown,
): Record<string, unknown> {
  const [key, ...rest] = path as [string, ...string[]]
  const inner = rest.length === 0 ? value : withValueAt(object[key] as Record<string, unknown>, rest, value)
  return { ...object, [key]: inner }
}

/** The whole list as one JSON text, without reading any of it; undefined if that cannot be had so. */
export function stepsText(steps: readonly PackedStep[]): string | undefined {
  const texts: string[] = []
  for (const [index, [atUs, body, kind = 0, reward, usage, , links, numbers]] of steps.entries()) {
    if (typeof body !== 'string' || links || numbers || !body.startsWith('{')) return undefined
    const place = `{"index":${index},"atMs":${atUs / 1000},"kind":"${STEP_KINDS[kind]}"`
    const rest = body === '{}' ? '' : `,${body.slice(1, -1)}`
    const tail = `${reward === null || reward === undefined ? '' : `,"reward":${reward}`}${usage ? `,"usage":${JSON.stringify(usage)}` : ''}}`
    texts.push(place + rest + tail)
  }
  return `[${texts.join(',')}]`
}
