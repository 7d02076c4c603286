import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ManyworldsError } from '../errors.ts'

/** The real paths of the modules to bundle. Symbolic links are resolved as esbuild does it, so that both have the same path. */
export function findEntries(entry: string | URL | readonly (string | URL)[]): string[] {
  const given = Array.isArray(entry) ? (entry as readonly (string | URL)[]) : [entry as string | URL]
  if (given.length === 0) throw new ManyworldsError('BUNDLE_FAILED', 'there is no module to bundle: the list is empty')
  return given.map((item) => {
    const path = toPath(item)
    try {
      return realpathSync(path)
    } catch (cause) {
      throw new ManyworldsError('BUNDLE_FAILED', `the module ${path} cannot be bundled: there is no such file`, {
        cause,
      })
    }
  })
}

function toPath(item: string | URL): string {
  const text = String(item)
  if (text.startsWith('file:')) return fileURLToPath(text)
  // Two letters at least, so that the drive of a Windows path is not taken for a scheme.
  if (/^[a-z][a-z0-9+.-]+:/i.test(text)) {
    const message = `the module ${text.slice(0, 100)} cannot be bundled, because it is not a file; move the agent into a file`
    throw new ManyworldsError('BUNDLE_FAILED', message)
  }
  return resolve(text)
}
