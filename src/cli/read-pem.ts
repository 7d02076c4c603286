import { readFileSync } from 'node:fs'
import { ManyworldsError } from '../errors.ts'

/** What is in the file that an option names; undefined if none was named. */
export function readPem(path: string | undefined, option: string): Buffer | undefined {
  if (path === undefined) return undefined
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new ManyworldsError('CONFIG_INVALID', `${option}: ${path} cannot be read: ${(cause as Error).message}`, {
      cause,
    })
  }
}
