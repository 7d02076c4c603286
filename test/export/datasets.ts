import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ensureEnvironment, type PythonEnvSpec } from '../../dist/python/environment.js'
import { shortHash } from '../../dist/python/lock.js'

/**
 * The packages with which others read our files: Hugging Face `datasets`, and the models of ATIF. About 100 MB to
 * download, once.
 */
const VERSION = '5.2.0'
export const DATASETS_SET_UP_MS = 400_000
const RUN_MS = 240_000

const inFolder = (name: string) => fileURLToPath(new URL(`python/${name}`, import.meta.url))
const lock = inFolder(`datasets-${VERSION}.txt`)
const needs: PythonEnvSpec = {
  title: `datasets ${VERSION}`,
  folder: `datasets-${VERSION}`,
  packages: [`datasets==${VERSION}`, 'atif==1.7.0'],
  python: '3.11',
  lock: { path: lock, hash: shortHash(readFileSync(lock, 'utf8')) },
}

/** Why that is not possible here, if it is not; under CI that is a failure. */
export async function whyNoDatasets(): Promise<string | undefined> {
  try {
    await ensureEnvironment(needs, (line) => void process.stderr.write(`${line}\n`))
    return undefined
  } catch (error) {
    if (process.env.CI) throw error
    const reason = (error as Error).message
    process.stderr.write(`\n*** SKIPPED: datasets cannot be set up here: ${reason} ***\n\n`)
    return reason
  }
}

/** The Python that has them. */
export const datasetsPython = (): Promise<string> => ensureEnvironment(needs, () => {})

/** What the packages make of files: `{ columns, features, rows }` of data sets, `{ steps }` of documents of ATIF. */
export async function readWithPython(files: Readonly<Record<string, string>>, cache: string): Promise<never> {
  const python = await datasetsPython()
  const env = { ...process.env, HF_HOME: cache, HF_HUB_OFFLINE: '1', HF_DATASETS_OFFLINE: '1' }
  const args = [inFolder('read_exports.py'), JSON.stringify(files)]
  const { stdout } = await promisify(execFile)(python, args, { env, timeout: RUN_MS, maxBuffer: 64 * 1024 * 1024 })
  return JSON.parse(stdout) as never
}
