import { hash } from 'node:crypto'
import { statSync } from 'node:fs'
import { findEntries } from './entries.ts'
import { findFiles } from './files.ts'
import { type Bundle, type BundleOptions, makeBundle } from './index.ts'

/** The number of bundles that a process keeps. Each may have megabytes. */
const KEPT = 8
/** File systems round the time of a change. */
const ROUNDING_MS = 1000

interface Made {
  readonly bundle: Bundle
  /** The state of each source. Undefined: one was changed while the bundle was made. */
  readonly states: ReadonlyMap<string, string> | undefined
}

const made = new Map<string, Promise<Made>>()

/** Makes a bundle, or returns an earlier one of this process if its sources are unchanged: making one takes up to a second of CPU. */
export async function bundleOf(modules: readonly string[], options: BundleOptions): Promise<Bundle> {
  const key = keyOf(modules, options)
  const before = made.get(key)
  const earlier = await before?.catch(() => undefined)
  const isReused = earlier !== undefined && (await isCurrent(earlier, modules, options))
  const now = isReused ? before! : make(modules, options)
  keep(key, now)
  return (await now).bundle
}

function keep(key: string, making: Promise<Made>): void {
  // The one used last comes last.
  made.delete(key)
  made.set(key, making)
  for (const old of [...made.keys()].slice(0, -KEPT)) made.delete(old)
  making.catch(() => made.get(key) === making && made.delete(key))
}

/** Includes the environment: modules may read it when they are loaded, and loading is part of making a bundle. */
function keyOf(modules: readonly string[], { env = process.env, ...options }: BundleOptions): string {
  return hash('sha256', JSON.stringify([modules, options, process.argv.slice(2), Object.entries(env).sort()]))
}

async function make(modules: readonly string[], options: BundleOptions): Promise<Made> {
  const begin = Date.now() - ROUNDING_MS
  const bundle = await makeBundle(modules, options)
  const isSettled = bundle.sources.every((path) => (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) < begin)
  return { bundle, states: isSettled ? new Map(bundle.sources.map((path) => [path, stateOf(path)])) : undefined }
}

async function isCurrent(
  { states }: Made,
  modules: readonly string[],
  { files = [] }: BundleOptions,
): Promise<boolean> {
  if (states === undefined) return false
  for (const [path, state] of states) if (stateOf(path) !== state) return false
  // A pattern may match a file that is new.
  return files.length === 0 || (await findFiles(files, findEntries(modules))).every((path) => states.has(path))
}

function stateOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats === undefined ? 'missing' : `${stats.ino} ${stats.size} ${stats.mtimeMs}`
}
