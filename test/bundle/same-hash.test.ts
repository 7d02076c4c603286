import { cpSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Bundle, bundleHash, makeBundle } from '../../src/bundle/index.ts'
import { emptyFolder, project, writeInto } from './project.ts'

const FILES = {
  // A file named index is what bundlers name after its folder.
  'index.ts': `import pg from 'pg'
    import { where } from './lib/where.ts'
    export const proof = [typeof pg.Pool, where, await Promise.resolve(1)]`,
  'lib/where.ts': 'export const where = import.meta.url',
  'prompt.txt': 'hello',
}

/** The code, and what its source map says. */
function readable(bundle: Bundle): string {
  const code = Buffer.from(bundle.code).toString()
  return code + Buffer.from(code.split('base64,').at(-1)!, 'base64').toString()
}

test('the same content has the same hash in another folder, deeper and with another name', async () => {
  const here = await makeBundle(join(project(FILES), 'index.ts'), { files: ['prompt.txt'] })
  const elsewhere = join(project({}), 'some/where/else')
  writeInto(elsewhere, { 'package.json': '{ "name": "users-project", "type": "module" }', ...FILES })
  const there = await makeBundle(join(elsewhere, 'index.ts'), { files: ['prompt.txt'] })
  expect(Buffer.from(there.code).toString()).toBe(Buffer.from(here.code).toString())
  expect(there.sha256).toBe(here.sha256)
  expect(here.sha256).toBe(bundleHash(here.code, here.files))
})

test('nothing in the bundle tells where it was made', async () => {
  const folder = project(FILES)
  const text = readable(await makeBundle(join(folder, 'index.ts')))
  expect(text).toContain('node_modules/pg/lib/client.js')
  expect(text).toContain('"sources":["lib/where.ts","index.ts"]')
  expect(text).not.toContain(folder.slice(tmpdir().length + 1))
  expect(text).not.toContain(join(import.meta.dirname, '../..'))
  expect(text).not.toMatch(/^(\/\/ | {2}")\.\.\//m)
})

test('the order of the entries does not change the hash, a changed module or file does', async () => {
  const folder = project({ 'a.ts': 'export const proof = 1', 'b.ts': 'export const proof = 2', 'c.txt': 'c' })
  const paths = [join(folder, 'a.ts'), join(folder, 'b.ts')]
  const hash = async () => (await makeBundle(paths, { files: ['c.txt'] })).sha256
  const before = await hash()
  paths.reverse()
  expect(await hash()).toBe(before)
  writeFileSync(join(folder, 'c.txt'), 'changed')
  const changed = await hash()
  expect(changed).not.toBe(before)
  writeFileSync(join(folder, 'b.ts'), 'export const proof = 3')
  expect(await hash()).not.toBe(changed)
})

test('a package that is linked from another folder counts as installed', async () => {
  const source = {
    'package.json': '{ "name": "tools", "type": "module", "exports": "./src/index.js" }',
    'src/index.js': 'export const tool = import.meta.url.split("/").slice(-4).join("/")',
  }
  const users = {
    'package.json': '{ "type": "module" }',
    'agent.ts': `import { tool } from 'tools'\nexport const proof = tool`,
  }
  const installed = emptyFolder()
  writeInto(installed, users)
  writeInto(join(installed, 'node_modules/tools'), source)

  const linked = emptyFolder()
  writeInto(linked, users)
  mkdirSync(join(linked, 'node_modules'))
  const checkout = emptyFolder()
  cpSync(join(installed, 'node_modules/tools'), checkout, { recursive: true })
  symlinkSync(checkout, join(linked, 'node_modules/tools'))

  const bundles = await Promise.all([installed, linked].map((folder) => makeBundle(join(folder, 'agent.ts'))))
  expect(bundles[1]!.sha256).toBe(bundles[0]!.sha256)

  // And the file that was renamed away shows that each read its own copy.
  renameSync(join(checkout, 'src/index.js'), join(checkout, 'src/gone.js'))
  await expect(makeBundle(join(linked, 'agent.ts'))).rejects.toMatchObject({ code: 'BUNDLE_FAILED' })
})
