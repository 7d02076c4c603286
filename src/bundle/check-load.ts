import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { BUNDLE_FILE } from '../call-site.ts'
import { ManyworldsError } from '../errors.ts'
import { stderrTail } from '../stderr-tail.ts'
import { type BundledFile, writeBundle } from './content.ts'
import type { LoadOutcome, LoadRequest } from './load-child.ts'
import { explainLoadFailure, failedExternal, type LoadFailure } from './load-hint.ts'

export const LOAD_LIMIT_MS = 30_000
const LOADS_AT_ONCE = 4
const STDERR_LIMIT_CHARS = 2_000
const LAST_OUTPUT_MS = 200

export interface LoadCheck {
  code: Uint8Array
  files: readonly BundledFile[]
  /** Keys in the bundle's `modules`. */
  keys: readonly string[]
  external: readonly string[]
  /** A file of the project, whose packages stand in for those that the nodes have. */
  project: string
  limitMs: number
  env: NodeJS.ProcessEnv
}

/** Loads each entry in a process of its own, in a folder that has nothing but the bundle. Returns warnings; throws BUNDLE_LOAD_FAILED. */
export async function checkLoad(check: LoadCheck): Promise<string[]> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'manyworlds-bundle-')))
  try {
    await writeBundle(folder, check)
    const warnings: string[] = []
    for (let start = 0; start < check.keys.length; start += LOADS_AT_ONCE) {
      const keys = check.keys.slice(start, start + LOADS_AT_ONCE)
      const failures = await Promise.all(keys.map((key) => loadEntry(check, key, folder)))
      failures.forEach((failure, index) => {
        if (failure) warnings.push(judge(failure, keys[index]!, check, folder))
      })
    }
    return warnings
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function judge(failure: LoadFailure, key: string, check: LoadCheck, folder: string): string {
  const { what, hint } = explainLoadFailure(failure, key, folder)
  const external = failedExternal(failure, check.external, folder)
  if (external)
    return `${key} could not be tried here, because the external package '${external}' does not load: ${what}`
  throw new ManyworldsError(
    'BUNDLE_LOAD_FAILED',
    `the bundle was built, but ${key} fails to load from it: ${what}\n${hint}`,
  )
}

/** Returns undefined if the entry was loaded. No process is left behind, whatever the entry did. */
async function loadEntry(check: LoadCheck, key: string, folder: string): Promise<LoadFailure | undefined> {
  const request: LoadRequest = {
    bundleUrl: pathToFileURL(join(folder, BUNDLE_FILE)).href,
    key,
    external: check.external,
    projectUrl: pathToFileURL(check.project).href,
    argv: process.argv.slice(2),
    parentPid: process.pid,
    limitMs: check.limitMs,
  }
  // NODE_OPTIONS and NODE_PATH may name what only this machine has.
  const { NODE_OPTIONS, NODE_PATH, ...env } = check.env
  const child = spawn(process.execPath, [CHILD, JSON.stringify(request)], {
    cwd: folder,
    env: { ...env, MANYWORLDS_WORKER: '1' },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    windowsHide: true,
    // Its own process group, so that what the entry started ends with it.
    detached: process.platform !== 'win32',
  })
  try {
    return await outcomeOf(child, check.limitMs)
  } finally {
    await end(child)
  }
}

// The child is a file of its own: `.ts` in this repository, `.js` in the package.
const CHILD = fileURLToPath(new URL(`./load-child${extname(new URL(import.meta.url).pathname)}`, import.meta.url))

function outcomeOf(child: ChildProcess, limitMs: number): Promise<LoadFailure | undefined> {
  return new Promise((resolve) => {
    let reported = ''
    const limit = setTimeout(() => resolve({ reason: 'too-slow', limitMs }), limitMs)
    const finish = (failure: LoadFailure | undefined) => {
      clearTimeout(limit)
      resolve(failure)
    }
    const stderr = stderrTail(child.stderr, { chars: STDERR_LIMIT_CHARS })
    ;(child.stdio[3] as Readable).setEncoding('utf8').on('data', (text: string) => {
      reported += text
      if (!reported.includes('\n')) return
      const outcome = JSON.parse(reported.slice(0, reported.indexOf('\n'))) as LoadOutcome
      finish(outcome.loaded ? undefined : outcome)
    })
    child.on('error', (error) => finish({ reason: 'exited', how: 'could not be started', stderr: error.message }))
    child.on('exit', (code, signal) => {
      const how = signal ? `was ended by ${signal}` : `ended with code ${code}`
      const exited = () => finish({ reason: 'exited', how, stderr: stderr() })
      // The last output may come after `exit`. `close` comes after it, but not while a process that the entry started holds stderr.
      child.on('close', exited)
      setTimeout(exited, LAST_OUTPUT_MS)
    })
  })
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined) return
  const exited =
    child.exitCode !== null || child.signalCode !== null ? undefined : new Promise((done) => child.once('exit', done))
  try {
    // Kill the whole group: its first process may have ended and left others.
    if (process.platform === 'win32') child.kill('SIGKILL')
    else process.kill(-child.pid, 'SIGKILL')
  } catch {
    // The whole group has ended already.
  }
  await exited
  for (const stream of child.stdio) stream?.destroy()
}
