import { isAbsolute } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as util from 'node:util'
import { ManyworldsError } from './errors.ts'
import { registry } from './registry.ts'

/** The name of the code in a bundle's folder. */
export const BUNDLE_FILE = 'manyworlds.bundle.mjs'

// A bundler that converts this to CommonJS leaves no URL, and then nothing here can work.
const OWN_URL: string = import.meta.url ?? ''
if (OWN_URL === '') throw new ManyworldsError('PACKAGE_BUNDLED', bundledInto('a CommonJS bundle'))
// All files of this package are in one folder (src/ or dist/); frames from there are never the user's.
const OWN_FOLDER = new URL('.', OWN_URL).href

// Node's names for code from the command line or stdin, which look like files in the working directory.
const NOT_A_FILE = /\[(eval|stdin|worker eval)\d*\]$/

/** The `file:` URL of the nearest caller outside this package, or undefined (eval, REPL, stdin). */
export const callerModule = (): string | undefined => caller()?.url

interface Caller {
  readonly url: string
  /** Line and column. */
  readonly place: string
  /** The call is inside a function, not at the module's top level. */
  readonly inFunction: boolean
}

/** The nearest caller outside this package. */
export function caller(): Caller | undefined {
  // A bundle's source map has only the user's modules: other frames belong to this package or to a dependency.
  // Otherwise a module is named by the file that runs, also with --enable-source-maps: workers import that file.
  // Not a named import: an older Node.js would fail on it before it could report that it is too old.
  const sites = util.getCallSites(30, { sourceMap: registry.bundled })
  for (const site of sites) {
    if (site.scriptName.startsWith('node:')) continue
    const url = toFileUrl(site.scriptName)
    // Code that is not a file: eval, or a bundler's module. The frames behind it, such as the bundler's runtime, are not the caller.
    if (url === undefined) return undefined
    if (url.startsWith(OWN_FOLDER) || url.endsWith(BUNDLE_FILE)) continue
    const { lineNumber, columnNumber, functionName } = site
    return { url: oneSpelling(url), place: `${lineNumber}:${columnNumber}`, inFunction: functionName !== '' }
  }
  return undefined
}

/** Longer stacks and lines are not searched: they may be of any length. */
const STACK_LINES = 50
const LINE_CHARS = 1000

const FRAME = /^\s+at (?:async )?(?:.*? \()?((?:file:\/\/|\/|[A-Za-z]:\\).*:\d+:\d+)\)?$/
/** The first line of the stack of a SyntaxError. */
const BROKEN_FILE = /^(file:\/\/.*:\d+)$/

/** Where the user's code threw an error, for a message: ` (at file:///project/tasks.ts:12:9)`. Empty if its stack does not say. */
export function thrownAt(error: unknown): string {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return ''
  const lines = error.stack.split('\n', STACK_LINES).map((line) => line.slice(0, LINE_CHARS))
  const places = lines.map((line, index) => ((index === 0 && BROKEN_FILE.exec(line)) || FRAME.exec(line))?.[1])
  const isUsers = (place: string | undefined) =>
    place !== undefined && !place.startsWith(OWN_FOLDER) && !/\/node_modules\/|<anonymous>/.test(place)
  const place = places.find(isUsers)
  return place === undefined || place.includes(BUNDLE_FILE) ? '' : ` (at ${place})`
}

/** Throws if a bundler has put this package into the user's program. Bundles that we make for other machines are allowed. */
export function refuseBundled(): void {
  if (registry.bundled || /\/call-site\.[jt]s$/.test(OWN_URL) || OWN_URL.endsWith(BUNDLE_FILE)) return
  throw new ManyworldsError('PACKAGE_BUNDLED', bundledInto(OWN_URL))
}

function bundledInto(where: string): string {
  return `manyworlds is part of ${where}, where it cannot find its worker program; leave it out of the bundle: \`--external:manyworlds\` (esbuild), \`external: ['manyworlds']\` (Rollup, Vite), \`serverExternalPackages: ['manyworlds']\` (Next.js)`
}

/** Why `callerModule` returns undefined. */
export function whyNoModule(): string {
  const { prepareStackTrace } = Error
  let bundler: string | undefined
  Error.prepareStackTrace = (_, sites) => {
    // Evaluated code may give itself a name, which call sites above do not show.
    const names = sites.map((site) => site.getScriptNameOrSourceURL() ?? '')
    bundler = names.find((name) => /^(webpack|turbopack|rspack|vite)[\w-]*:/.test(name))
  }
  void new Error().stack
  Error.prepareStackTrace = prepareStackTrace
  return bundler === undefined
    ? 'is not defined in a file (eval, REPL or stdin?), so workers could not load it; move it to a module, or name its module with `module: import.meta.url`'
    : `is defined in ${bundler}, a module that exists in a bundler only, so workers could not load it; keep agents in a file or package that the bundler leaves out (see docs/setups.md)`
}

/** In a bundle, a module's URL comes from the source map or from `import.meta.url`, which may escape its name differently. */
export const oneSpelling = (url: string): string =>
  registry.bundled && url.startsWith('file:') ? pathToFileURL(fileURLToPath(url)).href : url

// ES modules are named by URL, CommonJS modules by path; node: internals and eval are neither.
function toFileUrl(scriptName: string): string | undefined {
  if (NOT_A_FILE.test(scriptName)) return undefined
  if (scriptName.startsWith('file:')) return scriptName
  if (isAbsolute(scriptName)) return pathToFileURL(scriptName).href
  return undefined
}
