import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { jsonProblem } from '../../data/json-problem.ts'
import type { RunConfig } from '../../run-config.ts'
import type { ModelsConfig } from '../settings.ts'
import { checkGivenModels, EXAMPLE, type GivenModels, invalid, isRecord } from './given-models.ts'

/** Read from the current folder by every run, if it is there. */
export const MODELS_FILE = 'models.json'
/** A file that is longer holds something else. */
const MOST_BYTES = 1024 * 1024
const BASE_URL = /"base_?ur[il]"/i

/** The models of a file that was named, or of `models.json`; undefined: there is none, or none of ours. Throws if it has mistakes. */
export function readModelsFile(named?: string | false, needKeys = true): GivenModels | undefined {
  if (named === false) return undefined
  const isNamed = named !== undefined
  const file = named ?? MODELS_FILE
  const path = resolve(file)
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined && isNamed) throw invalid(file, 'there is no such file')
  if (!stat?.isFile()) {
    if (stat && isNamed) throw invalid(file, 'it is not a file')
    return undefined
  }
  if (stat.size > MOST_BYTES) {
    if (isNamed) throw invalid(file, `it has ${stat.size} bytes, and ${MOST_BYTES} is the most for a file of models`)
    return undefined
  }
  const text = textOf(path, file)
  const given = parsed(text, file, isNamed)
  if (isOurs(given)) return checkGivenModels(given, file, needKeys)
  if (isNamed) throw invalid(file, `it has no model with a \`baseURL\`, such as ${EXAMPLE}`)
  return undefined
}

/** The models of a run configuration with those of its file. */
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

/** Others use that name too: ours has models with a base URL. Close spellings count, so that the mistake is said. */
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

/** What editors let pass in their own files. */
function adviceOn(problem: string): string {
  if (problem.endsWith('found "/"')) return '; JSON has no comments'
  return /key in double quotes, found "}"$/.test(problem) ? '; remove the comma before it' : ''
}

/** Where it stops being JSON, and why. */
export function problemIn(text: string): string | undefined {
  const found = jsonProblem(text)
  if (found === undefined) return undefined
  const before = text.slice(0, found.column - 1).split('\n')
  const where = `line ${before.length}, column ${before.at(-1)!.length + 1}`
  // It is asked about a whole file, not about a line.
  const problem = found.problem.replaceAll('the end of the line', 'the end').replace(/ that begins at column \d+/, '')
  return `${where}: ${problem}`
}
