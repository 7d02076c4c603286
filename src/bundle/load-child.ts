/**
 * The process that loads one entry of a bundle, as a worker would, and reports the outcome. Started by `check-load.ts`, which ends it.
 */
import { writeSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { Worker } from 'node:worker_threads'
import { registry } from '../registry.ts'
import { onParked } from '../worker/role.ts'
import { guardPorts } from '../worker/script-guard.ts'

export interface LoadRequest {
  bundleUrl: string
  key: string
  /** Packages left out of the bundle on purpose. Here they are looked for in the project, on the nodes beside the bundle. */
  external: readonly string[]
  projectUrl: string
  /** Workers get the arguments of the driver's script. */
  argv: readonly string[]
  parentPid: number
  limitMs: number
}

export type LoadOutcome =
  | { loaded: true }
  | { loaded: false; reason: 'threw' | 'stuck'; message: string; stack: string }

const REPORT_FD = 3
const STACK_LIMIT_CHARS = 10_000

const request = JSON.parse(process.argv[2]!) as LoadRequest
process.argv = [process.execPath, fileURLToPath(request.bundleUrl), ...request.argv]

watchParent()
findExternalsInProject()
// Before the bundle is imported, since Node reads its source map at that moment.
process.setSourceMapsEnabled(true)
registry.bundled = true

// A `Runners` call of a one-file script: all that a worker needs was defined above it.
onParked(() => report({ loaded: true }))
guardPorts(() => true)
// The event loop is empty, and the import has not settled.
process.on('beforeExit', () => report({ loaded: false, reason: 'stuck', message: '', stack: '' }))

// Not awaited: Node would end this process with exit code 13 if the entry's own top-level await never settles.
import(request.bundleUrl)
  .then((bundle: { modules: Record<string, () => Promise<unknown>> }) => bundle.modules[request.key]!())
  .then((): LoadOutcome => ({ loaded: true }), thrown)
  .then(report)

function report(outcome: LoadOutcome): void {
  writeSync(REPORT_FD, `${JSON.stringify(outcome)}\n`)
}

function thrown(error: unknown): LoadOutcome {
  // A blocking `Runners` call throws this in a worker, where it must not wait.
  if ((error as Error | undefined)?.name === 'Parked') return { loaded: true }
  const message = error instanceof Error ? `${error.name}: ${error.message}` : inspect(error)
  const stack = error instanceof Error ? String(error.stack) : ''
  return { loaded: false, reason: 'threw', message, stack: stack.slice(0, STACK_LIMIT_CHARS) }
}

function findExternalsInProject(): void {
  const bundleFolder = new URL('.', request.bundleUrl).href
  const isExternal = (specifier: string) =>
    request.external.some((name) => specifier === name || specifier.startsWith(`${name}/`))
  registerHooks({
    resolve(specifier, context, nextResolve) {
      // Imports inside an external package are resolved from the package's own folder.
      const redirect = context.parentURL?.startsWith(bundleFolder) && isExternal(specifier)
      return nextResolve(specifier, redirect ? { ...context, parentURL: request.projectUrl } : context)
    },
  })
}

/** A thread, because the code that is loaded may block: without it a busy loop would outlive a driver that was killed. */
function watchParent(): void {
  const source = `
    const { rmSync } = require('node:fs')
    const { workerData } = require('node:worker_threads')
    setInterval(() => {
      if (process.ppid === workerData.parentPid && Date.now() < workerData.deadline) return
      rmSync(workerData.folder, { recursive: true, force: true })
      process.kill(process.platform === 'win32' ? process.pid : -process.pid, 'SIGKILL')
    }, 250)`
  const folder = fileURLToPath(new URL('.', request.bundleUrl))
  const workerData = { folder, parentPid: request.parentPid, deadline: Date.now() + 2 * request.limitMs }
  new Worker(source, { eval: true, workerData }).unref()
}
