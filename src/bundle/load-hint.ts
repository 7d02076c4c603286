import { posix } from 'node:path'
import type { LoadOutcome } from './load-child.ts'

export type LoadFailure =
  | Extract<LoadOutcome, { loaded: false }>
  | { reason: 'too-slow'; limitMs: number }
  | { reason: 'exited'; how: string; stderr: string }

/** What happened to the entry `key`, and what to do about it. `folder` is where it was loaded, which means nothing to the user. */
export function explainLoadFailure(failure: LoadFailure, key: string, folder: string): { what: string; hint: string } {
  const local = (text: string) => text.replaceAll(`file://${folder}/`, '').replaceAll(`${folder}/`, '')
  switch (failure.reason) {
    case 'too-slow':
      return {
        what: `it did not finish loading within ${failure.limitMs / 1000} s.`,
        hint: 'Something at the top level of a module blocks, or waits too long. Move it into setup() or run() of the agent.',
      }
    case 'stuck':
      return {
        what: 'its top-level await waits for something that never happens.',
        hint: 'Modules that import each other in a circle and use top-level await are one cause: break the circle.',
      }
    case 'exited': {
      const stderr = local(failure.stderr).trim()
      return {
        what: `the process ${failure.how} while loading it.${stderr && `\n${indent(stderr)}`}`,
        hint: 'Workers load the module too: what ends the process there belongs behind `if (!isWorker)`.',
      }
    }
    case 'threw': {
      const place = topFrame(local(failure.stack))
      return {
        what: `${local(failure.message).split('\nRequire stack:')[0]}${place && `\n    at ${place}`}`,
        hint: hintFor(failure.message, key, folder),
      }
    }
  }
}

/** The external package that failed to load here. It may well load on the nodes, which is what it was left out for. */
export function failedExternal(failure: LoadFailure, external: readonly string[], folder: string): string | undefined {
  if (failure.reason !== 'threw') return undefined
  const missing = missingPackage(failure.message)
  const [top] = framesOf(failure.stack).filter((frame) => !frame.includes('node:'))
  // What is not in the bundle's folder came in with an external, perhaps as a package that the external needs.
  const threwOutside = top?.includes('/node_modules/') && !top.includes(folder)
  return external.find(
    (name) =>
      missing === name ||
      missing?.startsWith(`${name}/`) ||
      (threwOutside && failure.stack.includes(`/node_modules/${name}/`)),
  )
}

function hintFor(message: string, key: string, folder: string): string {
  const file = message.split(`${folder}/`)[1]?.split(/['"\n]/)[0]
  if (/ENOENT|Cannot find module '\//.test(message) && file) {
    return file.startsWith('node_modules/')
      ? `A package looks for a file of its own that is not in the bundle. Ship it with bundle: { files: ['<way to>/${file}'] }, or leave the package out with bundle: { external: ['${packageIn(file)}'] } and install it on the nodes.`
      : `Ship the file along with bundle: { files: ['${posix.relative(posix.dirname(key), file)}'] }.`
  }
  const missing = missingPackage(message)
  if (missing) {
    return `'${missing}' is loaded by a name that only shows at run time, so it is not in the bundle. Import it by a literal name, or leave it out with bundle: { external: ['${missing}'] } and install it on the nodes.`
  }
  if (/\.node\b|bindings file/.test(message)) {
    return 'A native module cannot be bundled: leave its package out with bundle: { external: [...] } and install it on the nodes.'
  }
  return 'Workers load the module in a process of their own, in another folder. What may fail there belongs into setup() or run() of the agent. Of the driver’s environment they have only what the run names: env: { NAME: process.env.NAME }; what only the driver needs can stand behind `if (!isWorker)`, or the agents in a module of their own.'
}

function missingPackage(message: string): string | undefined {
  return /Cannot find (?:package|module) '([^'./][^']*)'/.exec(message)?.[1]
}

/** The first frame in the user's own modules: the source map gives those, and only those, a path other than the bundle's. */
function topFrame(stack: string): string {
  const own = framesOf(stack).find((line) => !/node:|manyworlds\.bundle\.mjs|node_modules/.test(line))
  return own?.trim().replace(/^at /, '') ?? ''
}

const framesOf = (stack: string) => stack.split('\n').filter((line) => /^\s+at /.test(line))
const packageIn = (label: string) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(label)?.[1] ?? label
const indent = (text: string) => text.replace(/^/gm, '    ')
