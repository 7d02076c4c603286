import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { project } from '../bundle/project.ts'
import { type Daemon, startNode } from './daemon.ts'

/** A worker on a node asks the driver for sub-tasks of code that is none of its business. It gets none of it, and the run goes on. */

let node: Daemon
beforeAll(async () => {
  node = await startNode()
})
afterAll(() => node.kill('SIGTERM'))

const INDEX = JSON.stringify(new URL('../../dist/index.js', import.meta.url).pathname)

/** Asks for a sub-task of whatever it is told, and answers what came of it. */
const SPY = `import { defineAgent, Runners } from MANYWORLDS
  const outcome = async (asked: Promise<any>) => asked.then(
    (response) => response.answer ?? { code: response.error.code, message: response.error.message },
    (error) => ({ code: error.code, message: error.message }))
  const ask = (ctx: any, ref: any, options = {}) =>
    outcome(ctx.runTask({ input: 20, agent: { name: ref.name, params: undefined, ref }, ...options }))
  const bundleOf = (url: string) => url.split('/').at(-2)!`

/** The script's JSON, and whether any process has evaluated what marks itself as secret. */
async function run(files: Record<string, string>): Promise<{ found: unknown; evaluated: boolean }> {
  const mark = join(tmpdir(), `mw-secret-${randomUUID()}`)
  const all = {
    'secret.ts': `import { writeFileSync } from 'node:fs'
      import { defineAgent } from MANYWORLDS
      writeFileSync(MARK, '')
      export const secret = defineAgent({ name: 'secret', run: () => 'the secret' })`,
    ...files,
  }
  const config = `{ engineName: 'nodes', store: false, nodes: { addresses: ['${node.address}'] } }`
  const written = Object.entries(all).map(([name, text]) => [
    name,
    text.replaceAll('MANYWORLDS', INDEX).replaceAll('CONFIG', config).replaceAll('MARK', JSON.stringify(mark)),
  ])
  const { VITEST: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, ['script.ts'], {
    cwd: project(Object.fromEntries(written)),
    env: { ...env, IN_THE_DRIVER: 'yes' },
  })
  const evaluated = existsSync(mark)
  rmSync(mark, { force: true })
  return { found: JSON.parse(stdout), evaluated }
}

const notShipped = { code: 'AGENT_NOT_SHIPPED', message: expect.stringContaining("agent 'secret'") }

test('no file of the driver is read, run or sent because a worker names it', async () => {
  const { found, evaluated } = await run({
    'script.ts': `${SPY}
      import { child } from './child.ts'
      const spy = defineAgent({ name: 'spy', run: async (modules: string[], ctx) => {
        const asked = modules.map((module) => ask(ctx, { name: 'secret', module: module.replace('OWN', bundleOf(import.meta.url)) }))
        return [...await Promise.all(asked), (await ctx.runTask(child.task(1))).answer]
      } })
      const secret = new URL('./secret.ts', import.meta.url)
      const response = await Runners.runTask(spy.task([
        secret.href, secret.pathname, './secret.ts', 'bundle:OWN/secret.ts', 'bundle:OWN/../secret.ts', 'bundle:OWN/child.ts',
        'bundle:OWN/script.ts', 'bundle:' + '0'.repeat(64) + '/secret.ts', 'bundle:/', '', 'data:text/javascript,', 'node:fs',
      ]), CONFIG)
      console.log(JSON.stringify(response.answer ?? response.error))`,
    'child.ts': `import { defineAgent } from MANYWORLDS
      export const child = defineAgent({ name: 'child', run: (n: number) => n + 1 })`,
  })
  expect(found).toEqual([...Array.from({ length: 12 }, () => notShipped), 2])
  expect(evaluated).toBe(false)
})

test('a module that is in the bundle, and defines no agent in the driver, is not run there', async () => {
  const { found, evaluated } = await run({
    'script.ts': `${SPY}
      const spy = defineAgent({ name: 'spy', run: async (load: boolean, ctx) => {
        // It is in the bundle, for a case that does not come up.
        if (load) await import('./secret.ts')
        return ask(ctx, { name: 'secret', module: 'bundle:' + bundleOf(import.meta.url) + '/secret.ts' })
      } })
      const response = await Runners.runTask(spy.task(false), CONFIG)
      console.log(JSON.stringify(response.answer ?? response.error))`,
  })
  expect(found).toEqual(notShipped)
  expect(evaluated).toBe(false)
})

test('what another run of the same program has shipped is not for this one', async () => {
  const { found } = await run({
    'script.ts': `${SPY}
      import { other } from './other.ts'
      const spy = defineAgent({ name: 'spy', run: (module: string, ctx) => ask(ctx, { name: 'other', module }) })
      const first = await Runners.runTask(other.task(1), CONFIG)
      const module = 'bundle:' + bundleOf(first.answer as string) + '/other.ts'
      const apart = await Runners.runTask(spy.task(module), CONFIG)
      const together = await Runners.runTask([other.task(2), spy.task(module)], CONFIG)
      console.log(JSON.stringify([apart.answer ?? apart.error, [...together.values()][1]!.answer]))`,
    'other.ts': `import { defineAgent } from MANYWORLDS
      export const other = defineAgent({ name: 'other', run: (_: number) => import.meta.url })`,
  })
  expect(found).toEqual([
    { code: 'AGENT_NOT_SHIPPED', message: expect.stringContaining("agent 'other'") },
    expect.stringContaining('/other.ts'),
  ])
})

test('a worker that finds no agent does not get the script that was started', async () => {
  const { found, evaluated } = await run({
    'script.ts': `import { writeFileSync } from 'node:fs'
      import { Runners } from MANYWORLDS
      import { absent } from './absent.ts'
      if (!process.env.IN_THE_DRIVER) writeFileSync(MARK, '')
      let code: unknown
      try { await Runners.runTask(absent.task(1), CONFIG) } catch (error) { code = (error as { code: string }).code }
      console.log(JSON.stringify(code))`,
    'absent.ts': `import { defineAgent } from MANYWORLDS
      const definition = { name: 'absent', run: () => 1 }
      export const absent = process.env.IN_THE_DRIVER ? defineAgent(definition) : undefined!`,
  })
  expect(found).toBe('AGENT_NOT_FOUND')
  expect(evaluated).toBe(false)
})
