import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { unifiedDiff } from '../../text/line-diff.ts'
import type { Texts } from './texts.ts'

/** Writes a file atomically. */
type WriteFile = (path: string, content: string) => Promise<void>

/** File names of the human-readable texts. */
const READABLE = /^(?:instructions|tools\.[\w.-]{1,128})\.md$/
export const CHANGES = 'changes.diff'

/** Writes texts in human-readable form, one file each. Programs load the weights file beside them. */
export async function writeReadable(folder: string, texts: Texts, write: WriteFile): Promise<void> {
  const names = Object.keys(texts).map((name) => `${name}.md`)
  for (const old of await readdir(folder))
    if ((READABLE.test(old) && !names.includes(old)) || old === CHANGES) await rm(join(folder, old), { force: true })
  for (const [name, text] of Object.entries(texts)) await write(join(folder, `${name}.md`), ended(text))
}

/** The differences between two versions, as a unified diff; empty if there are none. */
export function textChanges(
  before: Texts,
  after: Texts,
  versions: { readonly from: number; readonly to: number },
): string {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
  return names
    .map((name) =>
      unifiedDiff(ended(before[name] ?? ''), ended(after[name] ?? ''), {
        from: `${name}.md\tversion ${versions.from}`,
        to: `${name}.md\tversion ${versions.to}`,
      }),
    )
    .join('')
}

const ended = (text: string) => (text === '' || text.endsWith('\n') ? text : `${text}\n`)
