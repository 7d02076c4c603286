import { dirname, join } from 'node:path'
import type { Built } from './build.ts'
import { buildError, isBuildFailure } from './build-errors.ts'
import { checkLoad, LOAD_LIMIT_MS } from './check-load.ts'
import { type BundledFile, bundleHash, readFiles } from './content.ts'
import { findEntries } from './entries.ts'
import { findFiles, refuseOutside } from './files.ts'
import { type Layout, makeLayout } from './layout.ts'
import { buildWithoutNative } from './native.ts'
import { findPackageData } from './package-data.ts'

export { BUNDLE_FILE } from '../call-site.ts'
export { type BundledFile, bundleHash, writeBundle } from './content.ts'

export interface BundleOptions {
  /** Assets to ship along: paths, folders or patterns, relative to the folder of the entry. */
  files?: readonly string[]
  /** Packages that are installed on the nodes. */
  external?: readonly string[]
  /** How long loading the bundle once may take. */
  loadLimitMs?: number
  /** The environment of the workers. Default: that of this process. */
  env?: NodeJS.ProcessEnv
}

export interface Bundle {
  /** The hash of code and files: the same content has the same hash on every machine. */
  sha256: string
  /**
   * An ES module that exports `modules`: a function for each key, which evaluates that entry when it is called. A module's
   * `import.meta.url` is its key, as seen from the bundle's folder. With source maps enabled, call sites name it the same way.
   */
  code: Uint8Array
  files: BundledFile[]
  /** The key of each entry in `modules`, in the order the entries were given. */
  entries: string[]
  /** The modules in the bundle: by their name there, their path on this machine. */
  modules: Map<string, string>
  /** The files on this machine that decide what is in the bundle. */
  sources: string[]
  /** Packages that the code imports and that are not in the bundle, including optional ones. */
  externals: string[]
  warnings: string[]
}

/**
 * Makes one file of modules, for workers on other machines. Before it is returned, it was loaded once in an empty folder.
 *
 * @example
 * const bundle = await makeBundle(import.meta.url, { files: ['prompts/*.md'], external: ['better-sqlite3'] })
 * await writeBundle(folder, bundle)
 * const { modules } = await import(pathToFileURL(join(folder, BUNDLE_FILE)).href)
 * await modules[bundle.entries[0]]() // after process.setSourceMapsEnabled(true), stack traces show the user's files
 */
export async function makeBundle(
  entry: string | URL | readonly (string | URL)[],
  { files = [], external = [], loadLimitMs = LOAD_LIMIT_MS, env = process.env }: BundleOptions = {},
): Promise<Bundle> {
  const entries = findEntries(entry)
  const asked = await findFiles(files, entries)
  refuseOutside(asked, entries, makeLayout(entries))

  const { built, layout } = await buildFromRoot(entries, asked, external)
  const beside = [...(await findPackageData(built, layout)), ...asked]
  const shipped = await readFiles(beside, layout)
  const code = Buffer.from(built.code)
  const keys = entries.map((path) => layout.label(path))

  const check = {
    code,
    files: shipped,
    keys: [...new Set(keys)],
    external,
    project: entries[0]!,
    limitMs: loadLimitMs,
    env,
  }
  const warnings = [...built.warnings, ...unusedExternals(external, built), ...(await checkLoad(check))]
  return {
    sha256: bundleHash(code, shipped),
    code,
    files: shipped,
    entries: keys,
    modules: new Map([...built.inputs.keys()].map((path) => [layout.label(path), path])),
    sources: [...new Set([...built.inputs.keys(), ...beside, ...settingsOf(entries, layout)])],
    externals: built.externals,
    warnings,
  }
}

/** The files that say how the modules of a project are found and compiled. */
function settingsOf(entries: readonly string[], layout: Layout): string[] {
  const folders = entries.map((path) => layout.packageOf(path)?.folder ?? dirname(path))
  return folders.flatMap((folder) => [join(folder, 'package.json'), join(folder, 'tsconfig.json')])
}

/** The modules are known only after a build. If some lie above the folders of the entries, build again from a folder that contains all. */
async function buildFromRoot(
  entries: string[],
  files: string[],
  external: readonly string[],
): Promise<{ built: Built; layout: Layout }> {
  const layout = makeLayout(entries, files)
  try {
    const built = await buildWithoutNative({ entries, layout, external })
    const whole = makeLayout(entries, [...files, ...built.inputs.keys()])
    if (whole.root === layout.root) return { built, layout }
    return { built: await buildWithoutNative({ entries, layout: whole, external }), layout: whole }
  } catch (error) {
    throw isBuildFailure(error) ? buildError(error, layout.root) : error
  }
}

function unusedExternals(external: readonly string[], { externals }: Built): string[] {
  const unused = external.filter((name) => !name.includes('*') && !externals.includes(name))
  return unused.map((name) => `bundle.external names '${name}', which nothing in the bundle imports`)
}
