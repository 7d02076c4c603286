import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const MODULE = new URL('../../dist/locked-folder.js', import.meta.url).href

/** Makes folders in `parent` and removes them, while it also removes what the others have left. */
const owner = (parent: string) => `
import { LockedFolder, removeLeftovers } from ${JSON.stringify(MODULE)}
for (let n = 0; n < 300; n++) {
  removeLeftovers(${JSON.stringify(parent)}, 'work-')
  const folder = new LockedFolder(${JSON.stringify(parent)} + '/work-' + process.pid + '-' + n)
  if (!folder.isOurs) throw new Error('somebody removed it')
  await folder.remove()
}`

test('owners who start at once do not remove the folders of each other', { timeout: 120_000 }, async () => {
  const parent = mkdtempSync(join(tmpdir(), 'mw-locked-'))
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }))
  const start = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', owner(parent)])
  await Promise.all(Array.from({ length: 4 }, start))
  expect(readdirSync(parent)).toEqual([])
})
