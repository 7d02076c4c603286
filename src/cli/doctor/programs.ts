import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Found } from './check.ts'
import { below, findProgram } from './find-program.ts'
import { probe } from './probe.ts'

/** Asks a program for its version; `undefined` if there is no such program. */
async function ask(path: string | undefined, args: readonly string[], version: RegExp): Promise<Found | undefined> {
  if (path === undefined) return undefined
  const probed = await probe(path, args)
  if (!probed.ok) return { path, problem: probed.problem }
  const found = version.exec(probed.output)?.[1]
  return found === undefined ? { path, problem: 'does not say its version' } : { path, version: found }
}

const NUMBERS = /(\d+\.\d+(?:\.\d+)*)/

export const findNpm = async () => ask(await findProgram('npm'), ['--version'], NUMBERS)
export const findUv = async () => ask(await findProgram('uv'), ['--version'], NUMBERS)

/** `openjdk version "17.0.15"`; other lines may stand before it. Java 8 called itself 1.8. */
export const findJava = async () =>
  ask(
    await findProgram(below('JAVA_HOME', 'bin', 'java'), 'java'),
    ['-version'],
    /version "(?:1\.(?=[0-8]\b))?([\d.]+)/,
  )

export interface Python extends Found {
  /** Packages that it can import, by name. */
  readonly packages: Readonly<Record<string, Found>>
}

// Nothing is imported: that would take seconds, and Spark might start something.
const ASK_PYTHON = `
import importlib.util, json, platform
try:
    from importlib.metadata import version
except ImportError:
    version = lambda name: None
packages = {}
for name in ("pyspark",):
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            packages[name] = {"version": version(name), "path": spec.origin}
    except Exception:
        pass
print(json.dumps({"version": platform.python_version(), "packages": packages}))
`

/** The Python of the project's environment goes before the one on the PATH. */
export async function findPython(): Promise<Python | undefined> {
  const project = join('.venv', 'bin', 'python')
  const path = await findProgram(below('VIRTUAL_ENV', 'bin', 'python'), `./${project}`, 'python3', 'python')
  if (path === undefined) return undefined
  const probed = await probe(path, ['-c', ASK_PYTHON])
  if (!probed.ok) return { path, problem: probed.problem, packages: {} }
  try {
    const answer = JSON.parse(probed.output.trim().split('\n').at(-1)!) as Pick<Python, 'packages'>
    return { ...answer, path }
  } catch {
    return { path, problem: 'does not answer as Python 3 would', packages: {} }
  }
}

export async function findSpark(python: Python | undefined): Promise<Found | undefined> {
  const release = below('SPARK_HOME', 'RELEASE')
  const [, version] =
    /^Spark (\S+)/.exec(release === undefined ? '' : await readFile(release, 'utf8').catch(() => '')) ?? []
  if (version !== undefined) return { version, path: dirname(release!) }
  const submit = await findProgram(below('SPARK_HOME', 'bin', 'spark-submit'))
  if (submit !== undefined) return ask(submit, ['--version'], /version (\d+\.\d+\S*)/)
  return (
    inFolder(python?.packages.pyspark) ?? ask(await findProgram('spark-submit'), ['--version'], /version (\d+\.\d+\S*)/)
  )
}

/** A package is a folder; what Python names is the file in it that is imported first. */
const inFolder = (found: Found | undefined): Found | undefined =>
  found && { ...found, ...(found.path === undefined ? {} : { path: dirname(found.path) }) }
