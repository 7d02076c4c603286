import { posix } from 'node:path'
import type { LoadOutcome } from './load-child.ts'

export type LoadFailure =
  | Extract<LoadOutcome, { loaded: false }>
  | { reason: 'too-slow'; limitMs: number }
  | { reason: 'exited'; how: string; stderr: string }

/** What happened to the entry `key`, and what to do about it. `folder`, where it was loaded, is removed from the texts: it means nothing to the user. */
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
        what: 'a top-level await never settled, and the event loop is empty.',
        hint: 'Modules that import each other in a circle and use top-level await are one cause: break the circle.',
      }
    case 'exited': {
      const stderr = local(failure.stderr).trim()
      return {
        what: `the process ${failure.how} while loading it.${stderr && `\n${indent(stderr)}`}`,
        hint: 'Workers load the module too. Put code that ends the process behind `if (!isWorker)`.',
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
  // A frame outside the bundle's folder belongs to an external, or to a package that the external needs.
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
    return `'${missing}' is imported by a name that is only known at run time, so it is not in the bundle. Import it by a literal name, or leave it out with bundle: { external: ['${missing}'] } and install it on the nodes.`
  }
  if (/\.node\b|bindings file/.test(message)) {
    return 'A native module cannot be bundled: leave its package out with bundle: { external: [...] } and install it on the nodes.'
  }
  return 'Workers load the module in another process and folder. Move code that may fail there into setup() or run() of the agent. Workers get only those environment variables that the run names: env: { NAME: process.env.NAME }. Put code that only the driver needs behind `if (!isWorker)`, or move the agents to a module of their own.'
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
