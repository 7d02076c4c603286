import { isAbsolute } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as util from 'node:util'
import { ManyworldsError } from './errors.ts'
import { registry } from './registry.ts'

/** The name of the code in a bundle's folder. */
export const BUNDLE_FILE = 'manyworlds.bundle.mjs'

// Everything of this package lives under one folder (src/ or dist/); its frames are never the user's.
const OWN_FOLDER = new URL('.', import.meta.url).href

// What Node calls code from the command line or stdin, as if it were a file in the working directory.
const NOT_A_FILE = /\[(eval|stdin|worker eval)\d*\]$/

/** The `file:` URL of the nearest caller outside this package, or undefined (eval, REPL, stdin). */
export const callerModule = (): string | undefined => caller()?.url

interface Caller {
  readonly url: string
  /** Line and column. */
  readonly place: string
  /** It is not the module's own top level. */
  readonly inFunction: boolean
}

/** The nearest caller outside this package. */
export function caller(): Caller | undefined {
  // Not a named import: on an older Node that would fail before this could be said.
  if (util.getCallSites === undefined)
    throw new ManyworldsError('NODE_TOO_OLD', `manyworlds needs Node 22.18 or newer, this is ${process.version}`)
  // The source map of a bundle has the user's modules only: what it does not know belongs to this package, or another.
  // Elsewhere a module is named by the file that runs, also with --enable-source-maps: that is the one workers import.
  const sites = util.getCallSites(30, { sourceMap: registry.bundled })
  for (const site of sites) {
    const url = toFileUrl(site.scriptName)
    if (url === undefined || url.startsWith(OWN_FOLDER) || url.endsWith(BUNDLE_FILE)) continue
    const { lineNumber, columnNumber, functionName } = site
    return { url: oneSpelling(url), place: `${lineNumber}:${columnNumber}`, inFunction: functionName !== '' }
  }
  return undefined
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
