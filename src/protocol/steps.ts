import type { Step } from '../trajectory.ts'
import { isExactJson, MAX_JSON_LEVELS, packBytes } from './pack.ts'
import { readBytes, readJson } from './read-packed.ts'
import { lastEmptyPlaces } from './scan-v8.ts'
import { isObject } from './shapes.ts'

/**
 * A recorded step on its way: its JSON or, where that would not bring it back, the bytes of v8. Text, because the run
 * file wants it as text too: it is written once, in the worker, and read once.
 */
export type PackedStep = string | Uint8Array

export const packStep = (step: Step): PackedStep => (isExactJson(step) ? JSON.stringify(step) : packBytes(step))

/** The steps that a worker sent; throws if they are none. `json`: the whole list as one text, if it is that. */
export function readSteps(packed: readonly PackedStep[]): { steps: readonly Step[]; json: string | undefined } {
  const json = stepsText(packed)
  // Nearly always they are JSON: one text is quicker to read than many.
  const steps = json === undefined ? readOneByOne(packed) : readJson(json, MAX_JSON_LEVELS + 1)
  if (!Array.isArray(steps) || steps.length !== packed.length || !steps.every(isStep))
    throw new TypeError('a step that is none')
  return { steps, json }
}

/** The whole list as one JSON text; undefined if a step is not JSON. */
function stepsText(steps: readonly PackedStep[]): string | undefined {
  for (const step of steps) if (typeof step !== 'string') return undefined
  return `[${steps.join(',')}]`
}

/** Each step may have some empty places in its arrays, but a task may have any number of steps. */
const MAX_EMPTY_PLACES = 16 * 1024 * 1024

function readOneByOne(packed: readonly PackedStep[]): unknown[] {
  let empty = 0
  return packed.map((step) => {
    if (typeof step === 'string') return readJson(step)
    const value = readBytes(step)
    empty += lastEmptyPlaces()
    if (empty > MAX_EMPTY_PLACES) throw new TypeError('arrays in steps have too many empty places')
    return value
  })
}

const isStep = (step: unknown): step is Step =>
  isObject(step) && !Array.isArray(step) && Number.isFinite(step.index) && Number.isFinite(step.atMs)
