import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { jsonProblem } from '../../data/json-problem.ts'
import type { RunConfig } from '../../run-config.ts'
import type { ModelsConfig } from '../settings.ts'
import { checkGivenModels, EXAMPLE, type GivenModels, invalid, isRecord } from './given-models.ts'

/** Read from the current folder by every run, if it exists. */
export const MODELS_FILE = 'models.json'
/** A larger file is not a models file. */
const MAX_BYTES = 1024 * 1024
const BASE_URL = /"base_?ur[il]"/i

/**
 * The models of the named file, or of `models.json`; undefined if there is none, or it is not a models file. Throws if
 * it has mistakes.
 */
export function readModelsFile(named?: string | false, needKeys = true): GivenModels | undefined {
  if (named === false) return undefined
  const isNamed = named !== undefined
  const file = named ?? MODELS_FILE
  const path = resolve(file)
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined && isNamed) throw invalid(file, 'file not found (ENOENT)')
  if (!stat?.isFile()) {
    if (stat && isNamed) throw invalid(file, 'not a regular file')
    return undefined
  }
  if (stat.size > MAX_BYTES) {
    if (isNamed) throw invalid(file, `the file has ${stat.size} bytes, but a models file may have at most ${MAX_BYTES}`)
    return undefined
  }
  const text = textOf(path, file)
  const given = parsed(text, file, isNamed)
  if (isOurs(given)) return checkGivenModels(given, file, needKeys)
  if (isNamed) throw invalid(file, `no model has a \`baseURL\`; expected something like ${EXAMPLE}`)
  return undefined
}

/** The models of a run configuration together with those of its models file. */
export const allModels = ({ models, modelsFile }: Pick<RunConfig, 'models' | 'modelsFile'> = {}): ModelsConfig => ({
  ...readModelsFile(modelsFile)?.models,
  ...models,
})

function textOf(path: string, file: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '')
  } catch (cause) {
    throw invalid(file, `cannot be read: ${(cause as Error).message}`, cause)
  }
}

/**
 * Other programs use this file name too: ours has models with a base URL. Similar spellings count, so that mistakes are
 * reported.
 */
const isOurs = (given: unknown): boolean =>
  isRecord(given) &&
  Object.values(given).some((model) => isRecord(model) && Object.keys(model).some((key) => BASE_URL.test(`"${key}"`)))

function parsed(text: string, file: string, isNamed: boolean): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    if (!isNamed && !BASE_URL.test(text)) return undefined
    const problem = problemIn(text) ?? (cause as Error).message
    throw invalid(file, `is not JSON: ${problem}${adviceOn(problem)}`, cause)
  }
}

/** Advice for what editors accept in their own JSON files. */
function adviceOn(problem: string): string {
  if (problem.endsWith('found "/"')) return '; JSON does not allow comments'
  return /key in double quotes, found "}"$/.test(problem) ? '; remove the comma before it' : ''
}

/** Where and why the text is not JSON. */
export function problemIn(text: string): string | undefined {
  const found = jsonProblem(text)
  if (found === undefined) return undefined
  const before = text.slice(0, found.column - 1).split('\n')
  const where = `line ${before.length}, column ${before.at(-1)!.length + 1}`
  // The text is a whole file, not a single line.
  const problem = found.problem.replaceAll('the end of the line', 'the end').replace(/ that begins at column \d+/, '')
  return `${where}: ${problem}`
}
