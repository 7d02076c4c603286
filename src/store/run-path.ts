import { existsSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'

const FOLDER = join('.manyworlds', 'runs')
const EXTENSION = '.sqlite'

/** `MANYWORLDS_STORE`: the folder for run files where the run does not say; `off`: none. */
export function defaultStore(env = process.env): string | false {
  const value = env.MANYWORLDS_STORE
  if (value === undefined || value === '') return FOLDER
  return /^(off|false|0)$/i.test(value) ? false : value
}

/** `store` is a folder, or a run file itself. */
export function runPath(store: string, runId: string): string {
  return resolve(isFile(store) ? store : join(store, `${runId}${EXTENSION}`))
}

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
