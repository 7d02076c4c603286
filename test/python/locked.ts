import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ensureEnvironment } from '../../dist/python/environment.js'
import { shortHash } from '../../dist/python/lock.js'
import type { TestEnvironment } from './environments.ts'

/** For hooks of tests: an environment is made once, from the package registry. */
export const PYTHON_SET_UP_MS = 600_000

/** The Python of an environment, which is made where it is missing. `python`: another than the one on the PATH. */
export function pythonOf({ name, packages, python }: TestEnvironment, using = python): Promise<string> {
  const path = fileURLToPath(new URL(`locks/${name}.txt`, import.meta.url))
  const lock = { path, hash: shortHash(readFileSync(path, 'utf8')) }
  const say = (line: string) => void process.stderr.write(`${line}\n`)
  return ensureEnvironment({ title: name, folder: name, packages, python: using, lock }, say)
}

/** Why an environment cannot be made here, if it cannot; under CI that is a failure. */
export async function whyNoPython(environment: TestEnvironment): Promise<string | undefined> {
  try {
    await pythonOf(environment)
    return undefined
  } catch (error) {
    if (process.env.CI) throw error
    return skipped(environment.name, (error as Error).message)
  }
}

export function skipped(what: string, reason: string): string {
  process.stderr.write(`\n*** SKIPPED: ${what} cannot be set up here: ${reason} ***\n\n`)
  return reason
}

export interface ScriptRun {
  /** Given as JSON, on standard input. */
  readonly input: unknown
  readonly env?: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

const ERROR_CHARS = 3000

/** What a Python script prints: one JSON text. */
export async function runPython(python: string, script: URL, { input, env, timeoutMs }: ScriptRun): Promise<unknown> {
  const options = { env: { ...process.env, ...env }, timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 }
  const run = promisify(execFile)(python, [fileURLToPath(script)], options)
  run.child.stdin!.on('error', () => {}).end(JSON.stringify(input))
  try {
    return JSON.parse((await run).stdout)
  } catch (cause) {
    const { killed, stderr = '' } = cause as { killed?: boolean; stderr?: string }
    const how = killed ? `took longer than ${timeoutMs / 1000} s` : 'failed'
    throw new Error(`${script.pathname} ${how}: ${stderr.slice(-ERROR_CHARS)}`, { cause })
  }
}
