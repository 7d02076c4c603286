import { cacheFolder, privateFolder } from '../private-folder.ts'
import type { Placement } from './engine.ts'

let found: { readonly folder: string } | { readonly problem: string } | undefined
let said = false

/**
 * Keeps compiled code between workers: it halves their start time, more so for TypeScript. Anyone who can write to the cache
 * decides what workers run, so there is no cache without a folder that only this user can write to.
 */
export function compileCache(env: Placement['env']): Record<string, string> {
  if (env.NODE_COMPILE_CACHE !== undefined || env.NODE_DISABLE_COMPILE_CACHE !== undefined) return {}
  found ??= find()
  return 'folder' in found ? { NODE_COMPILE_CACHE: found.folder, MANYWORLDS_COMPILE_CACHE: '1' } : {}
}

/** A notice with the reason why there is no cache; returned once per process. */
export function noCompileCache(): string | undefined {
  if (said || found === undefined || 'folder' in found) return undefined
  said = true
  return `workers start more slowly, because compiled code cannot be kept: ${found.problem}`
}

function find(): typeof found & object {
  try {
    return { folder: privateFolder(cacheFolder('compiled')) }
  } catch (error) {
    return { problem: (error as Error).message }
  }
}
