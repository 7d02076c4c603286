import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** How a new project depends on this package: from the source of this copy, which may not be a registry. */
export function dependencyOn({ folder, version }: { readonly folder: string; readonly version: string }): string {
  const modules = dirname(folder)
  if (basename(modules) !== 'node_modules') return `file:${folder}`
  const owner = dirname(modules)
  const wanted = specifierIn(join(owner, 'package.json'))
  // Installed from a tarball or a folder: the path is relative to the project that installed it.
  return wanted?.startsWith('file:') ? `file:${resolve(owner, wanted.slice('file:'.length))}` : `^${version}`
}

function specifierIn(file: string): string | undefined {
  if (!existsSync(file)) return undefined
  const { dependencies, devDependencies } = JSON.parse(readFileSync(file, 'utf8')) as Record<
    string,
    Record<string, string>
  >
  return dependencies?.manyworlds ?? devDependencies?.manyworlds
}
