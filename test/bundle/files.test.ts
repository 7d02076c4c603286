import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeBundle, writeBundle } from '../../src/bundle/index.ts'
import { emptyFolder, project, proofFrom } from './project.ts'

const READ_BESIDE = `
import { readFileSync } from 'node:fs'
export const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')
`

test('a module finds the files beside it, wherever it lies in the project', async () => {
  const folder = project({
    'agents #1/agent.ts': `import { read } from '../shared/read.ts'
      import { readFileSync } from 'node:fs'
      import { join } from 'node:path'
      import cjs from './old.cjs'
      const ours = readFileSync(new URL('./my prompt.txt', import.meta.url), 'utf8')
      export const proof = [ours, readFileSync(join(import.meta.dirname, 'my prompt.txt'), 'utf8'), read('./rules.md'), cjs]`,
    'agents #1/old.cjs': `module.exports = require('fs').readFileSync(__dirname + '/my prompt.txt', 'utf8')`,
    'agents #1/my prompt.txt': 'be kind',
    'shared/read.ts': READ_BESIDE,
    'shared/rules.md': 'rules',
  })
  const bundle = await makeBundle(join(folder, 'agents #1/agent.ts'), { files: ['my prompt.txt', '../shared/*.md'] })
  expect(bundle.files.map((file) => file.path)).toEqual(['agents #1/my prompt.txt', 'shared/rules.md'])
  expect(bundle.entries).toEqual(['agents #1/agent.ts'])
  expect(await proofFrom(bundle)).toEqual(['be kind', 'be kind', 'rules', 'be kind'])
})

test('folders and patterns are shipped, but neither packages nor files with a leading dot', async () => {
  const folder = project({
    'agent.ts': 'export const proof = 1',
    'data/a.txt': 'a',
    'data/deep/b.txt': 'b',
    'data/.env': 'SECRET=1',
    'notes/c.md': 'c',
    '.env': 'SECRET=1',
  })
  const shipped = async (...files: string[]) =>
    (await makeBundle(join(folder, 'agent.ts'), { files })).files.map((file) => file.path)
  expect(await shipped('data')).toEqual(['data/a.txt', 'data/deep/b.txt'])
  expect(await shipped('**/*.{txt,md}')).toEqual(['data/a.txt', 'data/deep/b.txt', 'notes/c.md'])
  expect(await shipped('*')).toEqual(['agent.ts', 'package.json'])
  expect(await shipped('./.env')).toEqual(['.env'])
})

test('with several entries, files are looked for beside each of them', async () => {
  const folder = project({
    'one/agent.ts': `${READ_BESIDE}export const proof = read('one.txt')`,
    'one/one.txt': 'first',
    'two/agent.ts': `${READ_BESIDE}export const proof = read('two.txt')`,
    'two/two.txt': 'second',
  })
  const entries = [join(folder, 'two/agent.ts'), join(folder, 'one/agent.ts')]
  const bundle = await makeBundle(entries, { files: ['one.txt', 'two.txt'] })
  expect(bundle.entries).toEqual(['two/agent.ts', 'one/agent.ts'])
  expect(await proofFrom(bundle, 'one/agent.ts')).toBe('first')
  expect(await proofFrom(bundle, 'two/agent.ts')).toBe('second')
})

test.each(['prompts/nowhere.txt', 'prompts/*.nope'])(
  'a file that is not there is named with the path looked at: %s',
  async (file) => {
    const folder = project({ 'agent.ts': 'export const proof = 1', 'prompts/a.txt': 'a' })
    await expect(makeBundle(join(folder, 'agent.ts'), { files: [file] })).rejects.toMatchObject({
      code: 'BUNDLE_FILE_MISSING',
      message: expect.stringContaining(join(folder, file)),
    })
  },
)

test('a file from outside the project is refused, since it would bring paths of this machine along', async () => {
  const folder = project({ 'agent.ts': 'export const proof = 1' })
  const outside = join(emptyFolder(), 'data.txt')
  writeFileSync(outside, 'x')
  await expect(makeBundle(join(folder, 'agent.ts'), { files: [outside] })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining(outside),
  })
})

test.each(['../evil.txt', '/evil.txt', 'a/../../evil.txt', 'a\\..\\..\\evil.txt', 'c:evil.txt'])(
  'a received bundle cannot write outside its folder: %s',
  async (path) => {
    const bundle = { code: Buffer.from(''), files: [{ path, bytes: Buffer.from('x') }] }
    await expect(writeBundle(emptyFolder(), bundle)).rejects.toMatchObject({ code: 'BUNDLE_FAILED' })
  },
)
