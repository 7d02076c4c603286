import { join } from 'node:path'
import type { Found } from './check.ts'
import { below, findProgram } from './find-program.ts'
import { probe } from './probe.ts'

/** Asks a program for its version; undefined if the program was not found. */
async function ask(path: string | undefined, args: readonly string[], version: RegExp): Promise<Found | undefined> {
  if (path === undefined) return undefined
  const probed = await probe(path, args)
  if (!probed.ok) return { path, problem: probed.problem }
  const found = version.exec(probed.output)?.[1]
  return found === undefined
    ? { path, problem: 'its version cannot be read from its output' }
    : { path, version: found }
}

const NUMBERS = /(\d{1,9}(?:\.\d{1,9}){1,9})/

export const askNpm = async () => ask(await findProgram('npm'), ['--version'], NUMBERS)
export const askUv = async () => ask(await findProgram('uv'), ['--version'], NUMBERS)

/** `openjdk version "17.0.15"`; other lines may come before it. If JAVA_HOME is set, no other Java is used. */
export const askJava = async () =>
  ask(await findProgram(below('JAVA_HOME', 'bin', 'java') ?? 'java'), ['-version'], /version "([^"]+)"/)

/** The Python of the project's virtual environment takes precedence over the one on the PATH. */
export async function askPython(): Promise<Found | undefined> {
  const project = join('.venv', 'bin', 'python')
  const path = await findProgram(below('VIRTUAL_ENV', 'bin', 'python'), `./${project}`, 'python3', 'python')
  return ask(path, ['--version'], /^Python (\d+\.\S+)/m)
}
