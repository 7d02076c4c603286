import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeBundle } from '../../src/bundle/index.ts'
import { project } from './project.ts'

test('a syntax error is named by file, line and column, without a stack of ours', async () => {
  const folder = project({
    'agent.ts': `import './broken.ts'\n`,
    'broken.ts': 'export const a = 1\nexport const b = = 2\n',
  })
  const error: Error & { code?: string } = await makeBundle(join(folder, 'agent.ts')).catch((error) => error)
  expect(error.code).toBe('BUNDLE_FAILED')
  expect(error.message).toBe(
    `the code for the workers cannot be bundled:\n  ${join(folder, 'broken.ts')}:2:18: Unexpected "="`,
  )
})

test('an import of a file that is not there is named with the place of the import', async () => {
  const folder = project({ 'agent.ts': `\nimport { x } from './nowhere.ts'\nconsole.log(x)\n` })
  await expect(makeBundle(join(folder, 'agent.ts'))).rejects.toMatchObject({
    code: 'BUNDLE_FAILED',
    message: expect.stringContaining(`${join(folder, 'agent.ts')}:2:19: Could not resolve "./nowhere.ts"`),
  })
})

test('a package that is not installed comes with both ways out', async () => {
  const folder = project({ 'agent.ts': `import x from '@not/installed/deep.js'\nconsole.log(x)\n` })
  await expect(makeBundle(join(folder, 'agent.ts'))).rejects.toMatchObject({
    code: 'BUNDLE_FAILED',
    message: expect.stringMatching(/npm install @not\/installed\)[\s\S]*external: \['@not\/installed'\]/),
  })
})

test.each(['nowhere.ts', 'data:text/javascript,1'])('an entry that is no file is refused: %s', async (entry) => {
  await expect(makeBundle(entry)).rejects.toMatchObject({
    code: 'BUNDLE_FAILED',
    message: expect.stringContaining(entry),
  })
})

test('an external that nothing imports gives a warning, since it is probably misspelt', async () => {
  const folder = project({ 'agent.ts': 'export const proof = 1' })
  const { warnings } = await makeBundle(join(folder, 'agent.ts'), { external: ['beter-sqlite3'] })
  expect(warnings).toEqual([expect.stringContaining("'beter-sqlite3'")])
})
