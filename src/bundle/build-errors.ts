import { isAbsolute, resolve } from 'node:path'
import type { BuildFailure, Message } from 'esbuild'
import { ManyworldsError } from '../errors.ts'
import { packageName } from './layout.ts'

const SHOWN_ERRORS = 5

export function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && Array.isArray((error as Partial<BuildFailure>).errors)
}

/** Makes one error of esbuild's errors. Its lines are `file:line:column: text`, which editors can jump to. */
export function buildError(failure: BuildFailure, root: string): ManyworldsError {
  const lines = failure.errors.slice(0, SHOWN_ERRORS).map((error) => `  ${describe(error, root)}`)
  const more = failure.errors.length - lines.length
  if (more > 0) lines.push(`  and ${more} more`)
  const message = ['the code for the workers cannot be bundled:', ...lines, ...hints(failure.errors)].join('\n')
  return new ManyworldsError('BUNDLE_FAILED', message)
}

export function describe({ text, location }: Message, root: string): string {
  if (!location) return text
  const file = isAbsolute(location.file) ? location.file : resolve(root, location.file)
  return `${file}:${location.line}:${location.column + 1}: ${text}`
}

/** The specifier of an import that esbuild found nothing for. */
export function unresolved(error: Message): string | undefined {
  return /^Could not resolve "([^"]+)"/.exec(error.text)?.[1]
}

function hints(errors: readonly Message[]): string[] {
  const isPackage = (specifier: string) => /^[@\w]/.test(specifier)
  const names = errors.map(unresolved).filter((specifier) => specifier !== undefined && isPackage(specifier))
  const missing = [...new Set(names.map((specifier) => packageName(specifier!)))]
  if (missing.length === 0) return []
  const quoted = missing.map((name) => `'${name}'`).join(', ')
  return [
    `Install what is missing here (npm install ${missing.join(' ')}),`,
    `or, where the nodes have it installed, leave it out: bundle: { external: [${quoted}] }`,
  ]
}
