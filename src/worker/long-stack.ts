import { registry } from '../registry.ts'

/** A longer stack limit than usual, to see all async callers. */
const LIMIT = 100

/**
 * The files of the callers that await this call, as far as V8 knows them. These are the files that run, whether or not source
 * maps are enabled; in a bundle, only its source map tells the modules apart.
 */
export function whoWaits(): string {
  return registry.bundled ? longStack() : longStack((sites) => sites.map((site) => site.getFileName()).join('\n'))
}

/** Whether the top level of a module makes or awaits this call. */
export function isTopLevel(): boolean {
  let found = false
  longStack((sites) => {
    found = sites.some(isModule)
    return ''
  })
  return found
}

// Only a module is an unnamed frame at 1:1. In a bundle, each module is a function named after its file.
function isModule(site: NodeJS.CallSite): boolean {
  if (site.getFileName()?.startsWith('node:') !== false) return false
  const name = site.getFunctionName()
  if (registry.bundled) return /\.[cm]?[jt]sx?$/.test(name ?? '')
  return !name && site.getEnclosingLineNumber() === 1 && site.getEnclosingColumnNumber() === 1
}

function longStack(format?: (sites: NodeJS.CallSite[]) => string): string {
  const { stackTraceLimit, prepareStackTrace } = Error
  Error.stackTraceLimit = LIMIT
  if (format) Error.prepareStackTrace = (_, sites) => format(sites)
  const stack = new Error('parked').stack ?? ''
  Object.assign(Error, { stackTraceLimit, prepareStackTrace })
  return stack
}
