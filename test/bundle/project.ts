import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach } from 'vitest'
import { BUNDLE_FILE, type Bundle, writeBundle } from '../../src/bundle/index.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

export function emptyFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bundle-test-')))
  folders.push(folder)
  return folder
}

/** A user's project on disk, gone after the test. It is an ES module package and sees the packages of this repository. */
export function project(files: Record<string, string>): string {
  const folder = emptyFolder()
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(folder, 'node_modules'))
  writeInto(folder, { 'package.json': '{ "name": "users-project", "type": "module" }', ...files })
  return folder
}

export function writeInto(folder: string, files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

/** What an entry exports as `proof`, loaded from the bundle in another process and another folder. */
export async function proofFrom(bundle: Bundle, key = bundle.entries[0]!): Promise<unknown> {
  const folder = emptyFolder()
  await writeBundle(folder, bundle)
  const script = `
    process.setSourceMapsEnabled(true)
    const { modules } = await import(${JSON.stringify(`./${BUNDLE_FILE}`)})
    const { proof } = await modules[${JSON.stringify(key)}]()
    process.stdout.write('\\nPROOF' + JSON.stringify(typeof proof === 'function' ? proof() : proof), () => process.exit())`
  const args = ['--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder })
  return JSON.parse(stdout.split('\nPROOF')[1]!)
}
