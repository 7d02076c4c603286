import { existsSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'

const FOLDER = join('.manyworlds', 'runs')
const EXTENSION = '.sqlite'
/** The file in a folder that holds all its runs. */
const STORE = `store${EXTENSION}`

/** Where a run is kept. */
export interface RunPlace {
  readonly path: string
  /** The file holds many runs; else this one only. */
  readonly shared: boolean
}

/** `MANYWORLDS_STORE`: the folder for runs where the run does not say; `off`: none. */
export function defaultStore(env = process.env): string | false {
  const value = env.MANYWORLDS_STORE
  if (value === undefined || value === '') return FOLDER
  return /^(off|false|0)$/i.test(value) ? false : value
}

/** `store` is a folder with a store of many runs, or the file of one run. */
export function runPlace(store: string, runId: string): RunPlace {
  if (isFile(store)) return { path: resolve(store), shared: isSharedStore(store) }
  // A run of the folder may have a file of its own: from an earlier version, or brought there.
  const own = resolve(store, `${runId}${EXTENSION}`)
  const shared = sharedStore(store)
  return own !== shared && existsSync(own) ? { path: own, shared: false } : { path: shared, shared: true }
}

export const sharedStore = (folder: string): string => resolve(folder, STORE)
export const isSharedStore = (path: string): boolean => basename(path) === STORE

const isFile = (store: string) =>
  store.endsWith(EXTENSION) || store.endsWith('.db') || (existsSync(store) && statSync(store).isFile())

export const runIdOfPath = (path: string): string => basename(path, EXTENSION)
export const isRunFile = (name: string): boolean => name.endsWith(EXTENSION)

/** Sorts by time, can be typed, and does not meet another: 20261116-093000-k3f9qz. */
export function newRunId(now = new Date(), random = Math.random): string {
  const time = now.toISOString().replaceAll(/[-:]/g, '').replace('T', '-').slice(0, 15)
  const letters = Array.from({ length: 6 }, () => ALPHABET[Math.floor(random() * ALPHABET.length)]).join('')
  return `${time}-${letters}`
}

/** Without letters that look alike. */
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789'
