import { serialize } from 'node:v8'
import { readBytes, readJson } from '../protocol/read-packed.ts'
import type { PackedNumbers, PackedStep } from '../trajectory/packed-step.ts'
import { STEP_KINDS } from '../trajectory/step.ts'
import type { Redactor } from './redactor.ts'

type Fields = Record<string, unknown>

/** The length of the header before encoded numbers (`trajectory/numbers.ts`). */
const NUMBERS_HEADER_BYTES = 2
const MODEL = STEP_KINDS.indexOf('model')

/**
 * Removes secrets from steps. A model step that contained one is marked as redacted and loses its tokens, which would reveal it.
 * So does every model step that continues its conversation or shares a list with it. `first`: the index of the first step.
 * `redacted`: the indices of redacted steps of the attempt so far; new ones are added.
 */
export function redactSteps(
  redactor: Redactor,
  steps: PackedStep[],
  first: number,
  redacted: Set<number>,
): PackedStep[] {
  let clean: PackedStep[] | undefined
  for (const [place, step] of steps.entries()) {
    const own = redactStep(redactor, step, first + place, redacted)
    if (own === step) continue
    clean ??= [...steps]
    clean[place] = own
  }
  return clean ?? steps
}

function redactStep(redactor: Redactor, step: PackedStep, index: number, redacted: Set<number>): PackedStep {
  const [, body, kind = 0, , , , links, numbers] = step
  const isLinked = links?.some(([, base]) => redacted.has(base)) === true
  const isModel = kind === MODEL
  const cleanNumbers = redactNumbers(redactor, numbers)
  const hasOtherNumbers = cleanNumbers !== numbers
  const mustRead = redactor.mayHave(body) || hasOtherNumbers || isLinked || (isModel && redacted.size > 0)
  if (!mustRead) return step
  const fields = (typeof body === 'string' ? readJson(body) : readBytes(body)) as Fields
  const clean = redactor.value(fields)
  const isChanged = clean !== fields || hasOtherNumbers
  if (!isChanged && !isLinked && !(isModel && continuesOne(fields, redacted))) return step
  redacted.add(index)
  if (!isChanged && !isModel) return step
  const rest = isModel ? { ...clean, tokens: null, redacted: true } : clean
  const own: PackedStep = [...step]
  own[1] = typeof body === 'string' ? JSON.stringify(rest) : serialize(rest)
  const stays = (path: readonly string[]) => !(isModel && path[0] === 'tokens')
  // Keys are redacted too, and paths consist of keys.
  const named = (path: readonly string[]) => path.map((key) => redactor.text(key))
  if (links)
    own[6] = links.filter(([path]) => stays(path)).map(([path, base, keep]) => [named(path), base, keep] as const)
  if (cleanNumbers)
    own[7] = cleanNumbers.filter(([path]) => stays(path)).map(([path, buffer]) => [named(path), buffer] as const)
  return own
}

/** Whether a model step continues a redacted one: its prompt then contains the secret too, at least as token ids. */
function continuesOne({ request, tokens }: Fields, redacted: ReadonlySet<number>): boolean {
  const from = (of: unknown) => (typeof of === 'object' && of !== null && 'from' in of ? of.from : null)
  return [request, tokens].some((part) => redacted.has(from(part) as number))
}

/** Bytes, and numbers below 128, are encoded as single bytes, so texts can be found in them. */
function redactNumbers(redactor: Redactor, numbers: PackedStep[7]): PackedStep[7] {
  let clean: PackedNumbers[] | undefined
  for (const [place, [path, buffer]] of (numbers ?? []).entries()) {
    if (buffer.byteLength <= NUMBERS_HEADER_BYTES) continue
    const bytes = new Uint8Array(buffer, NUMBERS_HEADER_BYTES)
    const own = redactor.bytes(bytes)
    if (own === bytes) continue
    const whole = new Uint8Array(buffer.slice())
    whole.set(own, NUMBERS_HEADER_BYTES)
    clean ??= [...numbers!]
    clean[place] = [path, whole.buffer]
  }
  return clean ?? numbers
}
