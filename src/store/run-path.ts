import { existsSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'

const FOLDER = join('.manyworlds', 'runs')
const EXTENSION = '.sqlite'
/** How the names of run files end. */
const RUN_FILE = /\.(?:sqlite|db)$/
/** The file in a folder that holds all its runs. */
const STORE = `store${EXTENSION}`

/** The file that holds a run. */
export interface RunLocation {
  readonly path: string
  /** The file may hold many runs. */
  readonly shared: boolean
}

/** The store of runs that don't name one, from MANYWORLDS_STORE. Returns false if it is `off`. */
export function defaultStore(env = process.env): string | false {
  const value = env.MANYWORLDS_STORE
  if (value === undefined || value === '') return FOLDER
  return /^(off|false|0)$/i.test(value) ? false : value
}

/** `store`: a folder with a store of many runs, or the file of one run. */
export function runLocation(store: string, runId: string): RunLocation {
  if (isFile(store)) return { path: resolve(store), shared: isSharedStore(store) }
  // The run may have its own file in the folder: written by an earlier version, or copied there.
  const own = resolve(store, `${runId}${EXTENSION}`)
  const shared = sharedStore(store)
  return own !== shared && existsSync(own) ? { path: own, shared: false } : { path: shared, shared: true }
}

export const sharedStore = (folder: string): string => resolve(folder, STORE)
export const isSharedStore = (path: string): boolean => basename(path) === STORE

const isFile = (store: string) => isRunFile(store) || (existsSync(store) && statSync(store).isFile())

export const runIdOfPath = (path: string): string => basename(path).replace(RUN_FILE, '')
export const isRunFile = (name: string): boolean => RUN_FILE.test(name)

/** Makes an id that sorts by time, is easy to type and unlikely to collide: 20261116-093000-k3f9qz. */
export function newRunId(now = new Date(), random = Math.random): string {
  const time = now.toISOString().replaceAll(/[-:]/g, '').replace('T', '-').slice(0, 15)
  const letters = Array.from({ length: 6 }, () => ALPHABET[Math.floor(random() * ALPHABET.length)]).join('')
  return `${time}-${letters}`
}

/** Letters and digits, except those that look alike. */
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789'
