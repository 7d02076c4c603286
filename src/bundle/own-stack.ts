import { SourceMap } from 'node:module'
import { BUNDLE_FILE } from '../call-site.ts'
import type { Bundle } from './index.ts'

/** A place in a folder that is named by the hash of a bundle, on whichever machine: `…/<sha256>/lib/agent.ts:3:7`. */
const PLACE = /(?:file:\/\/)?[^\s()]*\/([0-9a-f]{64})\/([^\s()]+?):(\d+):(\d+)/g

const maps = new WeakMap<Bundle, SourceMap | undefined>()

/** A stack from another machine, with the places that the same code has here: those the user can open. */
export function ownStack(stack: string, bundles: ReadonlyMap<string, Bundle>): string {
  return stack.replaceAll(PLACE, (whole, sha256: string, label: string, line: string, column: string) => {
    const bundle = bundles.get(sha256)
    if (bundle === undefined) return whole
    // Who looks at a process from outside, as the watchdog does, sees the one file.
    if (label === BUNDLE_FILE) return mapped(bundle, Number(line), Number(column)) ?? whole
    const path = bundle.modules.get(decoded(label))
    return path === undefined ? whole : `${path}:${line}:${column}`
  })
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
