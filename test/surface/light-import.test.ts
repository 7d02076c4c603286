import { expect, it } from 'vitest'
import { runScript } from '../support/run-script.ts'

/** Prints what an import loads: modules of Node's own, and packages. */
const probe = (url: string) => `
import { registerHooks } from 'node:module'
const loaded = new Set()
registerHooks({
  load(url, context, next) {
    const [, name] = /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url) ?? []
    if (url.startsWith('node:') || name !== undefined) loaded.add(name ?? url)
    return next(url, context)
  },
})
await import(${JSON.stringify(url)})
console.log(JSON.stringify([...loaded]))`

it('an agent that imports manyworlds does not make its worker load HTTP, TLS, processes or a package', async () => {
  const url = new URL('../../dist/index.js', import.meta.url).href
  const flags = ['--input-type=module', '--eval', probe(url)]
  const { stdout, stderr } = await runScript(undefined, { flags, env: { MANYWORLDS_WORKER: '1' } })
  const loaded = JSON.parse(stdout || '[]') as string[]
  expect(loaded, stderr).toContain('node:path')
  expect(loaded.filter((name) => !name.startsWith('node:'))).toEqual([])
  for (const heavy of ['http', 'https', 'http2', 'tls', 'zlib', 'child_process', 'worker_threads', 'sqlite'])
    expect(loaded).not.toContain(`node:${heavy}`)
})
