import { MAX_VALUE_BYTES, NotPackable, packBytes, tooLarge } from '../protocol/pack.ts'
import { readBytes, readJson } from '../protocol/read-packed.ts'
import { lastEmptyPlaces } from '../protocol/scan-v8.ts'
import type { ListLink, ListMemory } from './list-memory.ts'
import { encodeNumbers, MOST_NUMBERS } from './numbers.ts'
import { STEP_KINDS, type Step, type StepContent } from './step.ts'
import { survey } from './survey.ts'
import { isUsage, USAGE_KEYS, type Usage } from './usage.ts'

/**
 * A step as it is sent and stored. Fields with a column of their own are next to `body`, which holds the rest: JSON, or the
 * bytes of v8.serialize if JSON cannot restore it. Empty elements at the end of the tuple are left out: most steps have two to
 * four elements.
 */
export type PackedStep = [
  atUs: number,
  body: string | Uint8Array,
  /** The index in `STEP_KINDS`. */
  kind?: number,
  reward?: number | null,
  usage?: Usage | null,
  /** The version of the policy that chose the action or made the completion. */
  version?: number | null,
  /** Lists of which `body` has only the elements that the earlier step does not have. */
  links?: readonly ListLink[] | null,
  /** Arrays of numbers (`numbers.ts`); `body` has null in their place. */
  numbers?: readonly PackedNumbers[] | null,
]

/** An ArrayBuffer, because a Uint8Array in a message always means a v8-serialized value (`portable.ts`). */
export type PackedNumbers = [path: readonly string[], numbers: ArrayBuffer]

/** Throws `NotPackable` if the step cannot be sent. */
export function packStep(step: Step, memory: () => ListMemory): PackedStep {
  const { index, atMs, kind } = step
  const reward = isPlainNumber(step.reward) ? step.reward : null
  const usage = usageIn(step)
  const body = bodyOf(step, reward !== null)
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
  `\`${path.join('.')}\` has ${count} numbers; one array can have at most ${MOST_NUMBERS}`

/** For exact JSON, stringify can only fail because the text is too long. */
function jsonOf(value: object): string {
  try {
    return JSON.stringify(value)
  } catch {
    throw new NotPackable(tooLarge(`more than ${MAX_VALUE_BYTES} bytes`))
  }
}

/**
 * Returns the fields that have no column of their own. Copies them one by one, because deleting properties makes an object
 * slow, and this runs for every step.
 */
function bodyOf(step: Step, hasReward: boolean): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  for (const key of Object.keys(step)) {
    if (key === 'index' || key === 'atMs' || key === 'kind' || key === 'usage') continue
    if (key === 'reward' && hasReward) continue
    body[key] = step[key as keyof Step]
  }
  return body
}

/** The approximate size of a packed step in bytes. */
export function packedStepSize([, body, , , , , links, numbers]: PackedStep): number {
  let size = body.length + 16
  if (links) size += 32 * links.length
  if (numbers) for (const [, buffer] of numbers) size += buffer.byteLength + 32
  return size
}

/** Throws if the body of a step from another process is malformed. */
export function checkStep(step: PackedStep): void {
  const { fields } = opened(step)
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    throw new TypeError('the body of a step is not an object')
  // Usage has an element of its own, which is checked and counted.
  if (Object.hasOwn(fields, 'usage')) throw new TypeError('the body of a step contains `usage`')
}

/** A packed step with its decoded body. */
export interface OpenedStep {
  readonly atUs: number
  readonly fields: unknown
  readonly kind: number
  readonly reward: number | null | undefined
  readonly usage: Usage | null | undefined
  readonly links: readonly ListLink[] | null | undefined
  readonly numbers: readonly PackedNumbers[] | null | undefined
  /** The number of holes in arrays, which take memory too. */
  readonly emptyPlaces?: number
}

export const opened = ([atUs, body, kind = 0, reward, usage, , links, numbers]: PackedStep): OpenedStep => {
  const fields: unknown = typeof body === 'string' ? readJson(body) : readBytes(body)
  const emptyPlaces = typeof body === 'string' ? 0 : lastEmptyPlaces()
  return { atUs, fields, kind, reward, usage, links, numbers, emptyPlaces }
}

const isPlainNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && !Object.is(value, -0)

/** The possible numbers of its usage: a server may report anything. */
function usageIn({ usage }: Step): Usage | null {
  if (typeof usage !== 'object' || usage === null) return null
  const found: Usage = {}
  for (const key of USAGE_KEYS) {
    const value = usage[key]
    if (isUsage(key, value)) found[key] = value
  }
  return found
}

function versionOf(step: StepContent): number | null {
  const version = step.kind === 'action' || step.kind === 'model' ? step.policy?.version : undefined
  return Number.isSafeInteger(version) && version! >= 0 ? version! : null
}

/** Drops empty elements at the end of the tuple. */
function trimmed(packed: PackedStep): PackedStep {
  let length = packed.length
  while (length > 2 && (packed[length - 1] === null || (length === 3 && packed[2] === 0))) length--
  return packed.slice(0, length) as PackedStep
}

/** A copy with another value at the path. Only the objects on the path are copied. */
function withValueAt(
  object: Record<string, unknown>,
  path: readonly string[],
  value: unknown,
): Record<string, unknown> {
  const [key, ...rest] = path as [string, ...string[]]
  const inner = rest.length === 0 ? value : withValueAt(object[key] as Record<string, unknown>, rest, value)
  return { ...object, [key]: inner }
}

/** Joins the bodies into one JSON text without parsing them. Undefined if a step is not plain JSON. */
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
