import { readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'

/** A package.json, as far as we look into it. */
interface PackageJson {
  name?: string
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  scripts?: Record<string, string>
  gypfile?: boolean
  binary?: unknown
  napi?: unknown
}

export interface PackageFolder {
  name: string
  folder: string
  json: PackageJson
}

/**
 * Where each module and file stands in the bundle's folder. Invariant: a label says nothing about this machine, and two files
 * that lie beside each other here lie beside each other there, so `new URL('./prompt.txt', import.meta.url)` finds the same file.
 */
export interface Layout {
  /** The folder that all of the user's own modules and files share. */
  root: string
  /** False for what belongs to a package that the user's modules import. */
  isOwn(path: string): boolean
  /** `lib/prompts.ts` for the user's own, `node_modules/pg/lib/index.js` for a package's, also where a package is a linked folder. */
  label(path: string): string
  packageOf(path: string): PackageFolder | undefined
}

/** `own` are further files known to be the user's: the root is wide enough for them too. */
export function makeLayout(entries: readonly string[], own: readonly string[] = []): Layout {
  const packageOf = packageFinder()
  const ownFolders = new Set(entries.map((entry) => packageOf(entry)?.folder))
  const isOwn = (path: string) => !inNodeModules(path) && ownFolders.has(packageOf(path)?.folder)

  const inRoot = [...entries, ...own].filter(isOwn).map((path) => dirname(path))
  const root = inRoot.length > 0 ? inRoot.reduce(commonFolder) : dirname(entries[0]!)

  const label = (path: string) => {
    // From the first `node_modules` on, so that two versions of one package stay two.
    if (inNodeModules(path)) return slashes(path.slice(path.indexOf(NODE_MODULES) + 1))
    const owner = packageOf(path)
    if (owner && !ownFolders.has(owner.folder))
      return `node_modules/${owner.name}/${slashes(relative(owner.folder, path))}`
    return slashes(relative(root, path))
  }
  return { root, isOwn, label, packageOf }
}

/** `@scope/name/deep/file.js` → `@scope/name` */
export function packageName(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

const NODE_MODULES = `${sep}node_modules${sep}`
const inNodeModules = (path: string) => path.includes(NODE_MODULES)
const slashes = (path: string) => path.replaceAll(sep, '/')

function commonFolder(a: string, b: string): string {
  let folder = a
  while (folder !== b && !b.startsWith(folder.endsWith(sep) ? folder : folder + sep)) folder = dirname(folder)
  return folder
}

/** Finds the nearest package.json with a name: those without only set the module type of a folder inside a package. */
function packageFinder(): (path: string) => PackageFolder | undefined {
  const known = new Map<string, PackageFolder | undefined>()
  const ofFolder = (folder: string): PackageFolder | undefined => {
    if (known.has(folder)) return known.get(folder)
    const json = readPackageJson(folder)
    const parent = dirname(folder)
    const found = json?.name ? { name: json.name, folder, json } : parent === folder ? undefined : ofFolder(parent)
    known.set(folder, found)
    return found
  }
  return (path) => ofFolder(dirname(path))
}

function readPackageJson(folder: string): PackageJson | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageJson
  } catch {
    return undefined
  }
}
