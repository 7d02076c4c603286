import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { makeBundle } from '../../src/bundle/index.ts'
import { emptyFolder, project, proofFrom, writeInto } from './project.ts'

const USES_SQLITE = `import Database from 'better-sqlite3'\nexport const open = () => new Database(':memory:')\n`

test('better-sqlite3 is refused by name, with who imports it and what to do', async () => {
  await expect(makeBundle(new URL('./fixtures/uses-better-sqlite3.ts', import.meta.url))).rejects.toMatchObject({
    code: 'BUNDLE_NATIVE_MODULE',
    message: expect.stringMatching(
      /'better-sqlite3', imported by lib\/store\.ts:2\n[\s\S]*bundle: \{ external: \['better-sqlite3'\] \}[\s\S]*npm install better-sqlite3/,
    ),
  })
})

test('better-sqlite3 as an external is left out, and the bundle passes', async () => {
  const folder = project({ 'agent.ts': USES_SQLITE })
  const bundle = await makeBundle(join(folder, 'agent.ts'), { external: ['better-sqlite3'] })
  expect(bundle.externals).toEqual(['better-sqlite3'])
  expect(bundle.warnings).toEqual([])
})

test('an external that does not work on this machine is a warning: it may work on the nodes', async () => {
  const packages = {
    'brittle/package.json': '{ "name": "brittle" }',
    'brittle/index.js': `throw new Error('no binary for this machine')`,
  }
  const { warnings } = await makeBundle(projectWith(packages, `import 'brittle'\n`), { external: ['brittle'] })
  expect(warnings).toEqual([expect.stringMatching(/could not be tried here[\s\S]*'brittle'/)])
})

test('an external that is not installed on this machine is a warning too', async () => {
  const folder = project({ 'agent.ts': `import x from 'only-on-the-nodes'\nexport const proof = x\n` })
  const { warnings } = await makeBundle(join(folder, 'agent.ts'), { external: ['only-on-the-nodes'] })
  expect(warnings).toEqual([expect.stringContaining("'only-on-the-nodes' does not load")])
})

test("an error of the user's own code is an error, also when an external calls it", async () => {
  const agent = `import { call } from 'caller'\nimport { fail } from './fail.ts'\ncall(fail)\n`
  const packages = { 'caller/package.json': '{ "name": "caller" }', 'caller/index.js': 'exports.call = (f) => f()' }
  const entry = projectWith(packages, agent)
  writeInto(dirname(entry), { 'fail.ts': `export const fail = () => { throw new Error('mine') }` })
  await expect(makeBundle(entry, { external: ['caller'] })).rejects.toMatchObject({
    code: 'BUNDLE_LOAD_FAILED',
    message: expect.stringMatching(/Error: mine\n {4}at .*fail\.ts:1:/),
  })
})

/** A project with packages of its own instead of those of this repository. */
function projectWith(packages: Record<string, string>, agent: string): string {
  const folder = emptyFolder()
  writeInto(folder, { 'package.json': '{ "name": "users-project", "type": "module" }', 'agent.ts': agent })
  writeInto(join(folder, 'node_modules'), packages)
  return join(folder, 'agent.ts')
}

const FAST = {
  'fast/package.json': '{ "name": "fast", "dependencies": { "node-gyp-build": "^4" } }',
  'fast/index.js': `module.exports = require('node-gyp-build')(__dirname)`,
  'node-gyp-build/package.json': '{ "name": "node-gyp-build" }',
  'node-gyp-build/index.js': `module.exports = () => { throw new Error('no binary') }`,
}

test('a native package that another one only tries for is left out, and the other does without it', async () => {
  const packages = {
    ...FAST,
    'sockets/package.json': '{ "name": "sockets" }',
    'sockets/index.js': `let speed = 'slow'; try { require('fast'); speed = 'fast' } catch {}\nexports.speed = speed`,
  }
  const entry = projectWith(packages, `import { speed } from 'sockets'\nexport const proof = speed\n`)
  const bundle = await makeBundle(entry)
  expect(bundle.warnings).toEqual([expect.stringContaining("'fast' is a native module that the code can do without")])
  expect(bundle.externals).toEqual(['fast'])
  expect(await proofFrom(bundle)).toBe('slow')
})

test('a native package that another one needs is refused, with the place in that other package', async () => {
  const packages = { ...FAST, 'needs/package.json': '{ "name": "needs" }', 'needs/index.js': `require('fast')` }
  await expect(makeBundle(projectWith(packages, `import 'needs'`))).rejects.toMatchObject({
    code: 'BUNDLE_NATIVE_MODULE',
    message: expect.stringContaining("'fast', imported by node_modules/needs/index.js:1"),
  })
})

test.each([
  ['was compiled', { 'addon/build/addon.node': 'binary' }],
  ['was not compiled', {}],
])('a package that requires its .node file plainly is refused where it %s', async (_, built) => {
  const packages = {
    'addon/package.json': '{ "name": "addon" }',
    'addon/index.js': `module.exports = require('./build/addon.node')`,
    ...built,
  }
  await expect(makeBundle(projectWith(packages, `import 'addon'`))).rejects.toMatchObject({
    code: 'BUNDLE_NATIVE_MODULE',
    message: expect.stringContaining("'addon', imported by agent.ts:1"),
  })
})

test("a .node file of the user's own is refused by its path", async () => {
  const folder = project({ 'agent.cjs': `module.exports = require('./lib/mine.node')`, 'lib/mine.node': 'binary' })
  await expect(makeBundle(join(folder, 'agent.cjs'))).rejects.toMatchObject({
    code: 'BUNDLE_NATIVE_MODULE',
    message: expect.stringContaining('lib/mine.node, imported by agent.cjs'),
  })
})

test('a package that has one binary package per platform is refused', async () => {
  const packages = {
    'images/package.json': '{ "name": "images", "optionalDependencies": { "@images/linux-x64": "1.0.0" } }',
    'images/index.js': 'module.exports = require("@images/" + process.platform + "-" + process.arch)',
  }
  await expect(makeBundle(projectWith(packages, `import 'images'`))).rejects.toMatchObject({
    code: 'BUNDLE_NATIVE_MODULE',
    message: expect.stringContaining("external: ['images']"),
  })
})
