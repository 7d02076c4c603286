import { isBuiltin } from 'node:module'
import { resolve } from 'node:path'
import type { BuildResult, Metafile } from 'esbuild'
import { describe } from './build-errors.ts'
import { type Layout, packageName } from './layout.ts'
import { loadEsbuild } from './load-esbuild.ts'
import { missingPeersThrow } from './missing-peers.ts'
import { BANNER, DEFINE, ownLocation } from './own-location.ts'
import { ownSourceMap } from './own-source-map.ts'

export interface BuildRequest {
  entries: readonly string[]
  layout: Layout
  external: readonly string[]
  /** Packages to treat as if they were not installed: an error, or left out where the import is in a `try`. */
  withheld?: readonly string[]
}

export interface Built {
  code: string
  /** Every file that went in, and what it imports. Keyed by real path. */
  inputs: Map<string, Metafile['inputs'][string]>
  /** The modules that ask for `import.meta.url` or `__dirname`. */
  askWhereTheyAre: string[]
  externals: string[]
  warnings: string[]
}

const ENTRIES_NAME = 'manyworlds-entries.js'
const WITHHELD = 'manyworlds-withheld!'

/** Throws esbuild's own BuildFailure: the caller knows whether it means a native module or a mistake in the code. */
export async function build({ entries, layout, external, withheld = [] }: BuildRequest): Promise<Built> {
  const esbuild = await loadEsbuild()
  const askWhereTheyAre: string[] = []
  const result = await esbuild.build({
    stdin: { contents: entriesModule(entries, layout), resolveDir: layout.root, sourcefile: ENTRIES_NAME },
    // esbuild writes paths into its output and derives variable names from them: relative to this folder.
    absWorkingDir: layout.root,
    outfile: 'bundle.mjs',
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    // Without this, esbuild adds the condition `module`, which Node does not have: what ran locally is what is shipped.
    conditions: [],
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'silent',
    sourcemap: 'external',
    sourcesContent: false,
    // No `keepNames`: its helper breaks functions that are sent elsewhere as text, such as those for `page.evaluate()`.
    loader: { '.node': 'empty' },
    banner: { js: BANNER },
    define: DEFINE,
    external: [...external],
    alias: Object.fromEntries(withheld.map((name) => [name, WITHHELD + name])),
    plugins: [missingPeersThrow(layout), ownLocation(layout, (path) => askWhereTheyAre.push(path))],
  })
  return {
    code: finishCode(result, entries, layout),
    inputs: inputsByPath(result.metafile, layout),
    askWhereTheyAre,
    externals: leftOut(result.metafile),
    warnings: ownWarnings(result, layout),
  }
}

/** The withheld package that an error is about; undefined: another one. */
export function withheldName(text: string): string | undefined {
  const specifier = new RegExp(`"${WITHHELD}([^"]+)"`).exec(text)?.[1]
  return specifier === undefined ? undefined : packageName(specifier)
}

/** Each entry behind a function, so that a worker evaluates only the modules whose agents it runs. Sorted: the order given must not change the hash. */
function entriesModule(entries: readonly string[], layout: Layout): string {
  const byLabel = new Map(entries.map((path) => [layout.label(path), path]))
  const lines = [...byLabel]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([label, path]) => `  ${JSON.stringify(label)}: () => import(${JSON.stringify(path)}),`)
  return ['export const modules = {', '  __proto__: null,', ...lines, '}'].join('\n')
}

function finishCode(result: BuildResult<{ write: false }>, entries: readonly string[], layout: Layout): string {
  const output = (end: string) => result.outputFiles.find((file) => file.path.endsWith(end))!.text
  // esbuild names modules of packages by their path from the root, which depends on where node_modules is on this machine.
  const named = output('.mjs').replace(MODULE_NAME, (whole, before: string, path: string) =>
    path.startsWith('..') ? before + layout.label(resolve(layout.root, path)) : whole,
  )
  const map = ownSourceMap(output('.map'), (source) => {
    const path = resolve(layout.root, source)
    return source !== ENTRIES_NAME && (layout.isOwn(path) || entries.includes(path)) ? layout.label(path) : undefined
  })
  return `${named}//# sourceMappingURL=data:application/json;base64,${Buffer.from(map).toString('base64')}\n`
}

/** A comment above each module, one above each import by pattern, and the key of each wrapper: `  async "lib/a.ts"() {`. */
const MODULE_NAME = /^(\/\/ (?:(?:import|require)\(.*\) in )?| {2}(?:async )?")([^"\n]+)/gm

function inputsByPath({ inputs }: Metafile, layout: Layout): Built['inputs'] {
  const files = Object.entries(inputs).filter(([name]) => name !== ENTRIES_NAME)
  return new Map(files.map(([name, input]) => [resolve(layout.root, name), input]))
}

function leftOut({ outputs }: Metafile): string[] {
  const imports = Object.values(outputs).flatMap((output) => output.imports)
  const names = imports
    .filter(({ path, external }) => external && !isBuiltin(path))
    .map(({ path }) => packageName(path))
  return [...new Set(names)].sort()
}

/** Warnings about packages are left out: their user cannot act on them. */
function ownWarnings({ warnings }: BuildResult, layout: Layout): string[] {
  const own = warnings.filter(({ location }) => location && layout.isOwn(resolve(layout.root, location.file)))
  return own.map((warning) => describe(warning, layout.root))
}
