import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const repository = fileURLToPath(new URL('../..', import.meta.url))

/** A folder outside of this repository, with this package installed in it; it is removed after the test. */
export function userProject(files: Readonly<Record<string, string>>): (file: string) => string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'manyworlds-project-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(repository, join(folder, 'node_modules', 'manyworlds'))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return (file) => join(folder, file)
}
