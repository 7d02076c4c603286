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
  /** The environment that workers will have; that of this process where it is not given. */
  env?: NodeJS.ProcessEnv
}

export interface Bundle {
  /** Of code and files: the same content has the same hash on every machine. */
  sha256: string
  /**
   * An ES module that exports `modules`: a function for each key, which evaluates that entry when it is called. A module's
   * `import.meta.url` is its key, as seen from the bundle's folder. With source maps enabled, call sites name it the same way.
   */
  code: Uint8Array
  files: BundledFile[]
  /** The key of each entry in `modules`, in the order the entries were given. */
  entries: string[]
  /** Every module that is in it: by the name that it has there, its path here. */
  modules: Map<string, string>
  /** Packages that the code asks for and that are not in it, those that it can do without included. */
  externals: string[]
  warnings: string[]
}

/**
 * From modules to one shippable file, for workers on other machines. It was loaded once, in an empty folder, before it is handed out.
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
  const shipped = await readFiles([...(await findPackageData(built, layout)), ...asked], layout)
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
    externals: built.externals,
    warnings,
  }
}

/** Which modules there are shows only when they are built. Where some lie above the folders of the entries, it is done again from there. */
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
  return unused.map((name) => `bundle.external names '${name}', which nothing in the bundle imports.`)
}
