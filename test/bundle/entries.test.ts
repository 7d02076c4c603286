import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { makeBundle } from '../../src/bundle/index.ts'
import { project, proofFrom } from './project.ts'

const INDEX = new URL('../../src/bundle/index.ts', import.meta.url)

test('two modules with agents make one bundle; a worker evaluates only the one it asks for', async () => {
  const folder = project({
    'a.ts': `import { log } from './shared.ts'\nlog.push('a')\nawait Promise.resolve()\nexport const proof = log\n`,
    'b.ts': `import { log } from './shared.ts'\nlog.push('b')\nexport const proof = log\n`,
    'shared.ts': `export const log: string[] = ['shared']\n`,
  })
  const bundle = await makeBundle([join(folder, 'b.ts'), new URL(`file://${folder}/a.ts`)])
  expect(bundle.entries).toEqual(['b.ts', 'a.ts'])
  expect(await proofFrom(bundle, 'a.ts')).toEqual(['shared', 'a'])
  expect(await proofFrom(bundle, 'b.ts')).toEqual(['shared', 'b'])
})

test('when one of two modules fails to load, it is the one that is named', async () => {
  const folder = project({ 'good.ts': 'export const proof = 1', 'bad.ts': `throw new Error('broken')` })
  await expect(makeBundle([join(folder, 'good.ts'), join(folder, 'bad.ts')])).rejects.toMatchObject({
    code: 'BUNDLE_LOAD_FAILED',
    message: expect.stringMatching(/bad\.ts fails to load from it: Error: broken/),
  })
})

test('names that a module declares itself do not clash with those of the bundle', async () => {
  const folder = project({
    'agent.ts': `#!/usr/bin/env node
      import { createRequire } from 'node:module'
      import { dirname } from 'node:path'
      import { fileURLToPath } from 'node:url'
      import other from './other.cjs'
      const require = createRequire(import.meta.url)
      const __filename = fileURLToPath(import.meta.url)
      const __dirname = dirname(__filename)
      export const proof = [typeof require('node:fs').readFileSync, __dirname === import.meta.dirname, other]`,
    'other.cjs': `const events = require('events'); module.exports = [typeof events.EventEmitter, __filename.endsWith('/other.cjs')]`,
  })
  expect(await proofFrom(await makeBundle(join(folder, 'agent.ts')))).toEqual(['function', true, ['function', true]])
})

test('each module has its own URL in the bundle, and a call site names it too', async () => {
  const where = `const [site] = getCallSites(1, { sourceMap: true })
    export const here = [import.meta.url === site!.scriptName, site!.scriptName.split('/').slice(-2).join('/')]`
  const folder = project({
    'agent.ts': `import { here } from './lib/deep.ts'\nexport const proof = here`,
    'lib/deep.ts': `import { getCallSites } from 'node:util'\n${where}`,
  })
  expect(await proofFrom(await makeBundle(join(folder, 'agent.ts')))).toEqual([true, 'lib/deep.ts'])
})

test('modules that are imported by a pattern are in the bundle', async () => {
  const folder = project({
    'agent.ts': `const load = (name: string) => import(\`./tools/\${name}.ts\`)\nexport const proof = (await load('add')).result`,
    'tools/add.ts': 'export const result: number = 3',
  })
  expect(await proofFrom(await makeBundle(join(folder, 'agent.ts')))).toBe(3)
})

test('importing the bundler does not load esbuild', async () => {
  const script = `
    import { registerHooks } from 'node:module'
    const seen = []
    registerHooks({ resolve: (specifier, context, next) => (seen.push(specifier), next(specifier, context)) })
    await import(${JSON.stringify(INDEX.href)})
    console.log(seen.length > 5 && !seen.includes('esbuild'))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  expect(stdout).toBe('true\n')
})

test('a bundle that contains the bundler does not contain esbuild', async () => {
  const folder = project({
    'agent.ts': `import { makeBundle } from ${JSON.stringify(INDEX.pathname)}\nexport const proof = typeof makeBundle`,
  })
  const bundle = await makeBundle(join(folder, 'agent.ts'))
  expect(bundle.code.byteLength).toBeLessThan(200_000)
  expect(bundle.externals).toEqual([])
  expect(await proofFrom(bundle)).toBe('function')
})
