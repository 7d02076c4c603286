import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { unifiedDiff } from '../../text/line-diff.ts'
import type { Texts } from './texts.ts'

/** One file of a folder, whole or not at all. */
type WriteFile = (path: string, content: string) => Promise<void>

/** What people read has these names. */
const READABLE = /^(?:instructions|tools\.[\w.-]{1,128})\.md$/
export const CHANGES = 'changes.diff'

/** Writes texts for people, one file each. What programs load is the file of weights beside them. */
export async function writeReadable(folder: string, texts: Texts, write: WriteFile): Promise<void> {
  const names = Object.keys(texts).map((name) => `${name}.md`)
  for (const old of await readdir(folder))
    if ((READABLE.test(old) && !names.includes(old)) || old === CHANGES) await rm(join(folder, old), { force: true })
  for (const [name, text] of Object.entries(texts)) await write(join(folder, `${name}.md`), ended(text))
}

/** What has changed from one version to another, for people and `patch`; empty: nothing. */
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
