import { rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bundleOf } from '../../src/bundle/reuse.ts'
import { project, writeInto } from './project.ts'

const FILES = {
  'agent.ts': `export { proof } from './lib.ts'`,
  'lib.ts': 'export const proof = 1',
  'prompts/a.txt': 'a',
  'package.json': '{ "name": "users-project", "type": "module" }',
}

/** A project that nobody has touched for a while, and its bundle. */
function settled() {
  const folder = project(FILES)
  for (const name of Object.keys(FILES)) age(join(folder, name))
  const bundle = (env: NodeJS.ProcessEnv = process.env) =>
    bundleOf([join(folder, 'agent.ts')], { files: ['prompts/*.txt'], env })
  return { folder, bundle }
}

function age(path: string): void {
  const time = new Date(Date.now() - 60_000)
  utimesSync(path, time, time)
}

test('what has not changed is not bundled again', async () => {
  const { bundle } = settled()
  const first = await bundle()
  expect(await bundle()).toBe(first)
  expect(await Promise.all([bundle(), bundle()])).toEqual([first, first])
})

test.each<[string, (folder: string) => void]>([
  ['a module', (folder) => writeFileSync(join(folder, 'lib.ts'), 'export const proof = 2')],
  ['a file', (folder) => writeFileSync(join(folder, 'prompts/a.txt'), 'b')],
  ['the settings', (folder) => writeFileSync(join(folder, 'tsconfig.json'), '{}')],
  ['the files that a pattern matches', (folder) => writeInto(folder, { 'prompts/b.txt': 'b' })],
])('%s that changed: the bundle is made again', async (_what, change) => {
  const { folder, bundle } = settled()
  const first = await bundle()
  change(folder)
  const second = await bundle()
  expect(second).not.toBe(first)
  // It was changed a moment ago, and could be changed again within the same tick of the file system's clock.
  expect(await bundle()).not.toBe(second)
})

test('another environment may load other code', async () => {
  const { bundle } = settled()
  const first = await bundle()
  expect(await bundle({ ...process.env, MODE: 'other' })).not.toBe(first)
})

test('a failure is not kept, nor a file that is gone', async () => {
  const { folder, bundle } = settled()
  const first = await bundle()
  rmSync(join(folder, 'lib.ts'))
  await expect(bundle()).rejects.toMatchObject({ code: 'BUNDLE_FAILED' })
  writeInto(folder, { 'lib.ts': FILES['lib.ts'] })
  expect((await bundle()).sha256).toBe(first.sha256)
})
