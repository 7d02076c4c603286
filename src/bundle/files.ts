import { statSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { ManyworldsError } from '../errors.ts'
import type { Layout } from './layout.ts'

/**
 * The files that the user asks for: a path, a folder or a pattern, as seen from the folder of an entry. With several entries
 * each one's folder is looked into, so that adding an agent does not change what a pattern means.
 */
export async function findFiles(patterns: readonly string[], entries: readonly string[]): Promise<string[]> {
  const folders = [...new Set(entries.map((entry) => dirname(entry)))]
  const found = new Set<string>()
  for (const pattern of patterns) {
    const matches = (await Promise.all(folders.map((folder) => expand(folder, pattern)))).flat()
    if (matches.length === 0) throw missing(pattern, folders)
    for (const path of matches) found.add(path)
  }
  return [...found].sort()
}

/** A file outside the project would bring the folders of this machine into the bundle, and into its hash. */
export function refuseOutside(files: readonly string[], entries: readonly string[], layout: Layout): void {
  const project = layout.packageOf(entries[0]!)
  const outside = files.find((path) => project && layout.packageOf(path) === undefined)
  if (outside === undefined) return
  const message = `the file ${outside} of bundle.files is outside the project (${project!.folder}); copy it into the project`
  throw new ManyworldsError('CONFIG_INVALID', message)
}

/** A path that exists is used as it is, even with brackets in its name. Patterns do not match hidden files such as `.env`. */
async function expand(folder: string, pattern: string): Promise<string[]> {
  const kind = kindOf(resolve(folder, pattern))
  if (kind === 'file') return [resolve(folder, pattern)]
  const matches: string[] = []
  const wanted = kind === 'folder' ? { cwd: resolve(folder, pattern), pattern: '**/*' } : { cwd: folder, pattern }
  const exclude = pattern.includes('node_modules') ? () => false : (name: string) => /(^|[\\/])node_modules$/.test(name)
  for await (const match of glob(wanted.pattern, { cwd: wanted.cwd, exclude })) {
    const path = resolve(wanted.cwd, match)
    if (kindOf(path) === 'file') matches.push(path)
  }
  return matches
}

function kindOf(path: string): 'file' | 'folder' | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats?.isFile() ? 'file' : stats?.isDirectory() ? 'folder' : undefined
}

function missing(pattern: string, folders: readonly string[]): ManyworldsError {
  const looked = folders.map((folder) => (pattern.includes('*') ? join(folder, pattern) : resolve(folder, pattern)))
  const message = [
    `bundle.files asks for '${pattern}', and there is no such file. Looked at:`,
    ...looked.map((path) => `  ${path}`),
    'Paths are relative to the folder of the module that defines the agent.',
  ].join('\n')
  return new ManyworldsError('BUNDLE_FILE_MISSING', message)
}
