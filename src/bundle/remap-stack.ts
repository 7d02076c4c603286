import { SourceMap } from 'node:module'
import { BUNDLE_FILE } from '../call-site.ts'
import type { Bundle } from './index.ts'

/** A location in a stack: it has no spaces or brackets, and stands alone or in brackets. */
const WORD = /[^\s()]+/g
/** The folder of a bundle, on whichever machine, is named by its hash. */
const FOLDER = /\/(?=([0-9a-f]{64})\/)/g
const HASH_CHARS = 64
const LINE_AND_COLUMN = /:(\d{1,9}):(\d{1,9})/

const maps = new WeakMap<Bundle, SourceMap | undefined>()

/**
 * Rewrites a stack from another machine to the paths that the same code has here, which the user can open. The text is not
 * trusted, so this takes linear time.
 */
export function remapStack(stack: string, bundles: ReadonlyMap<string, Bundle>): string {
  return stack.replaceAll(WORD, (word) => (word.length > HASH_CHARS ? ownPlace(word, bundles) : word))
}

/** `…/<sha256>/lib/agent.ts:3:7` */
function ownPlace(word: string, bundles: ReadonlyMap<string, Bundle>): string {
  let bundle: Bundle | undefined
  let labelAt = 0
  for (const { index, 1: sha256 } of word.matchAll(FOLDER)) {
    const known = bundles.get(sha256!)
    if (known === undefined) continue
    bundle = known
    labelAt = index + HASH_CHARS + 2
  }
  if (bundle === undefined) return word
  const rest = word.slice(labelAt)
  const [place, line, column] = LINE_AND_COLUMN.exec(rest) ?? []
  if (place === undefined) return word
  const labelEnd = rest.indexOf(place)
  const own = ownPath(bundle, rest.slice(0, labelEnd), Number(line), Number(column))
  return own === undefined ? word : own + rest.slice(labelEnd + place.length)
}

function ownPath(bundle: Bundle, label: string, line: number, column: number): string | undefined {
  // Stacks taken from outside, as the watchdog's, name only the bundle file.
  if (label === BUNDLE_FILE) return mapped(bundle, line, column)
  const path = bundle.modules.get(decoded(label))
  return path === undefined ? undefined : `${path}:${line}:${column}`
}

function mapped(bundle: Bundle, line: number, column: number): string | undefined {
  const entry = mapOf(bundle)?.findEntry(line - 1, column - 1)
  if (entry === undefined || !('originalSource' in entry)) return undefined
  const path = bundle.modules.get(entry.originalSource)
  return path === undefined ? undefined : `${path}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
}

function mapOf(bundle: Bundle): SourceMap | undefined {
  if (maps.has(bundle)) return maps.get(bundle)
  const text = Buffer.from(bundle.code).toString()
  const start = text.lastIndexOf('base64,')
  const map = start < 0 ? undefined : new SourceMap(JSON.parse(Buffer.from(text.slice(start + 7), 'base64').toString()))
  maps.set(bundle, map)
  return map
}

function decoded(label: string): string {
  try {
    return decodeURIComponent(label)
  } catch {
    return label
  }
}
