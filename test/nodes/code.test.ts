import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { project } from '../bundle/project.ts'
import { freePort } from '../support/free-port.ts'
import { type Daemon, startNode } from './daemon.ts'

/** Scripts as users write them, run on a node that has none of their files. */

let node: Daemon
const packages = mkdtempSync(join(tmpdir(), 'mw-packages-'))
const INDEX = JSON.stringify(new URL('../../dist/index.js', import.meta.url).pathname)
const DATA = JSON.stringify(new URL('../../dist/data/index.js', import.meta.url).pathname)

beforeAll(async () => {
  mkdirSync(join(packages, 'node_modules/only-on-the-node'), { recursive: true })
  writeFileSync(join(packages, 'node_modules/only-on-the-node/index.js'), 'module.exports = { secret: 42 }')
  node = await startNode({ args: ['--packages', packages] })
})
afterAll(async () => {
  await node.kill('SIGTERM')
  rmSync(packages, { recursive: true })
})

/** What a script prints as JSON. */
async function run(files: Record<string, string>, config = ''): Promise<unknown> {
  const folder = project(
    Object.fromEntries(
      Object.entries(files).map(([name, text]) => [
        name,
        text
          .replaceAll('MANYWORLDS', INDEX)
          .replaceAll('DATA', DATA)
          .replaceAll(
            'CONFIG',
            `{ engineName: 'nodes', store: false, nodes: { addresses: ['${node.address}'] }, ${config} }`,
          ),
      ]),
    ),
  )
  const { VITEST: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, ['script.ts', 'an-argument'], {
    cwd: folder,
    env: { ...env, SECRET_OF_THE_DRIVER: 'x' },
  })
  return JSON.parse(stdout)
}

test('a one-file script, with modules that it imports and arguments that it was given', async () => {
  const found = await run({
    'script.ts': `import { defineAgent, Runners } from MANYWORLDS
      import { greet } from './lib/greet.ts'
      const agent = defineAgent({ name: 'a', run: (name: string) => [greet(name), process.argv[2]] })
      const response = await Runners.runTask(agent.task('world'), CONFIG)
      console.log(JSON.stringify(response.answer ?? response.error))`,
    'lib/greet.ts': "export const greet = (name: string): string => 'hello ' + name",
  })
  expect(found).toEqual(['hello world', 'an-argument'])
})

test('agents of several modules, and sub-tasks of an agent in another module', async () => {
  const found = await run({
    'script.ts': `import { Runners } from MANYWORLDS
      import { parent } from './agents/parent.ts'
      import { other } from './agents/other.ts'
      const responses = await Runners.runTask([parent.task(20), other.task(1)], CONFIG)
      console.log(JSON.stringify([...responses.values()].map((r) => r.answer ?? r.error)))`,
    'agents/parent.ts': `import { defineAgent } from MANYWORLDS
      import { child } from './child.ts'
      export const parent = defineAgent({ name: 'same name', run: async (n: number, ctx) => (await ctx.runTask(child.task(n))).answer })`,
    'agents/child.ts': `import { defineAgent } from MANYWORLDS
      export const child = defineAgent({ name: 'child', run: (n: number) => n + 1 })`,
    'agents/other.ts': `import { defineAgent } from MANYWORLDS
      export const other = defineAgent({ name: 'same name', run: (n: number) => -n })`,
  })
  expect(found).toEqual([21, -1])
})

test('the same for a script that blocks', async () => {
  const found = await run({
    'script.ts': `import { Runners } from MANYWORLDS
      import { make } from './parent.ts'
      const parent = make('made')
      const responses = Runners.syncRunTask([parent.task(20)], CONFIG)
      console.log(JSON.stringify([...responses.values()].map((r) => r.answer ?? r.error)))
      await Runners.shutdown()`,
    'parent.ts': `import { defineAgent } from MANYWORLDS
      import { child } from './child.ts'
      export const make = (name: string) => defineAgent({ name, run: async (n: number, ctx) => (await ctx.runTask(child.task(n))).answer })`,
    'child.ts': `import { defineAgent } from MANYWORLDS
      export const child = defineAgent({ name: 'child', run: (n: number) => n + 1 })`,
  })
  expect(found).toEqual([21])
})

test('an agent of a module that is used only later', async () => {
  const found = await run({
    'script.ts': `import { Runners } from MANYWORLDS
      import { one } from './one.ts'
      import { two } from './two.ts'
      async function* tasks() { yield one.task(1); await new Promise((r) => setTimeout(r, 1500)); yield two.task(2) }
      const answers: unknown[] = []
      for await (const r of Runners.streamTask(tasks(), CONFIG)) answers.push(r.answer ?? r.error)
      console.log(JSON.stringify(answers))`,
    'one.ts': `import { defineAgent } from MANYWORLDS
      export const one = defineAgent({ name: 'one', run: (n: number) => 'one ' + n })`,
    'two.ts': `import { defineAgent } from MANYWORLDS
      export const two = defineAgent({ name: 'two', run: (n: number) => 'two ' + n })`,
  })
  // As they finish: where bundling is slow, the second may be first.
  expect((found as string[]).toSorted()).toEqual(['one 1', 'two 2'])
})

test('an agent that a function of another module makes', async () => {
  const found = await run({
    'script.ts': `import { Runners } from MANYWORLDS
      import { makeAgent } from './factory.ts'
      const agent = makeAgent('made', 3)
      const response = await Runners.runTask(agent.task(14), CONFIG)
      console.log(JSON.stringify(response.answer ?? response.error))`,
    'factory.ts': `import { defineAgent } from MANYWORLDS
      export const makeAgent = (name: string, factor: number) =>
        defineAgent({ name, params: { factor }, run: (n: number, ctx) => n * ctx.params.factor })`,
  })
  expect(found).toBe(42)
})

test('several agents that a function makes, one after the other', async () => {
  const found = await run({
    'script.ts': `import { Runners } from MANYWORLDS
      import { make } from './factory.ts'
      const [one, two] = [make(1), make(2)]
      const first = await Runners.runTask(one.task(20), CONFIG)
      const second = await Runners.runTask(two.task(20), CONFIG)
      console.log(JSON.stringify([first.answer ?? first.error, second.answer ?? second.error]))`,
    'factory.ts': `import { defineAgent } from MANYWORLDS
      export const make = (k: number) => defineAgent({ name: 'made' + k, run: (n: number) => n + k })`,
  })
  expect(found).toEqual([21, 22])
})

test('a task that reads a Parquet file', async () => {
  const path = new URL('../data/fixtures/pyarrow-none.parquet', import.meta.url).pathname
  const found = await run({
    'script.ts': `import { defineAgent, Runners } from MANYWORLDS
      import { fromParquet } from DATA
      const agent = defineAgent({ name: 'a', run: async (path: string) => (await Array.fromAsync(fromParquet(path))).length })
      const response = await Runners.runTask(agent.task(${JSON.stringify(path)}), CONFIG)
      console.log(JSON.stringify(response.answer ?? response.error))`,
  })
  expect(found).toBe(5)
})

test('files beside a module go along, and a worker begins in an empty folder', async () => {
  const found = await run(
    {
      'script.ts': `import { readFileSync, readdirSync } from 'node:fs'
        import { defineAgent, Runners } from MANYWORLDS
        const agent = defineAgent({ name: 'a', run: () => [readFileSync(new URL('./prompts/one.md', import.meta.url), 'utf8'), readdirSync('.').length] })
        const response = await Runners.runTask(agent.task(undefined), CONFIG)
        console.log(JSON.stringify(response.answer ?? response.error))`,
      'prompts/one.md': 'Be brief.',
    },
    "bundle: { files: ['prompts/*.md'] }",
  )
  expect(found).toEqual(['Be brief.', 0])
})

test('packages that are installed on the node, and not sent', async () => {
  const found = await run(
    {
      'script.ts': `import { defineAgent, Runners } from MANYWORLDS
        const agent = defineAgent({ name: 'a', run: async () => (await import('only-on-the-node')).default.secret })
        const response = await Runners.runTask(agent.task(undefined), CONFIG)
        console.log(JSON.stringify(response.answer ?? response.error))`,
    },
    "bundle: { external: ['only-on-the-node'] }",
  )
  expect(found).toBe(42)
})

test('the stack of an error names the places that the user can open', async () => {
  const found = await run({
    'script.ts': `import { defineAgent, Runners } from MANYWORLDS
      import { fail } from './lib/fail.ts'
      const agent = defineAgent({ name: 'a', run: () => fail() })
      const { error } = await Runners.runTask(agent.task(undefined), CONFIG)
      console.log(JSON.stringify([error!.stack!.split('\\n')[1]!.includes(process.cwd() + '/lib/fail.ts:3:'), error!.stack]))`,
    'lib/fail.ts': `// first line
      export function fail(): never {
        throw new Error('kaputt')
      }`,
  })
  expect(found).toEqual([true, expect.stringContaining('kaputt')])
})

test('the environment of the driver stays there, but for what the run names', async () => {
  const found = await run(
    {
      'script.ts': `import { defineAgent, Runners } from MANYWORLDS
        const agent = defineAgent({ name: 'a', run: () => [process.env.SECRET_OF_THE_DRIVER ?? 'kept', process.env.GIVEN, typeof process.env.PATH, Object.keys(process.env).filter((name) => name.startsWith('MANYWORLDS_B'))] })
        const response = await Runners.runTask(agent.task(undefined), CONFIG)
        console.log(JSON.stringify(response.answer ?? response.error))`,
    },
    "env: { GIVEN: 'yes' }",
  )
  expect(found).toEqual(['kept', 'yes', 'string', []])
})

test('a module that cannot be bundled is one clear error, before anything runs', async () => {
  const failure = run({
    'script.ts': `import { defineAgent, Runners } from MANYWORLDS
      import Database from 'better-sqlite3'
      const agent = defineAgent({ name: 'a', run: () => String(Database) })
      try { await Runners.runTask(agent.task(undefined), CONFIG) } catch (error) { console.log(JSON.stringify({ code: (error as { code: string }).code, message: (error as Error).message })) }`,
  })
  expect(await failure).toMatchObject({
    code: 'BUNDLE_NATIVE_MODULE',
    message: expect.stringContaining('better-sqlite3'),
  })
})

test('a server in the same file: the node opens none of its ports', async () => {
  const port = await freePort()
  const found = await run({
    'script.ts': `import { createServer } from 'node:http'
      import { defineAgent, Runners } from MANYWORLDS
      const agent = defineAgent({ name: 'a', run: (n: number) => 2 * n })
      const server = createServer(async (request, response) => {
        const { answer } = await Runners.runTask(agent.task(21), CONFIG)
        response.end(JSON.stringify(answer))
      })
      await new Promise<void>((up) => server.listen(${port}, up))
      console.log(await (await fetch('http://localhost:${port}')).text())
      process.exit()`,
  })
  expect(found).toBe(42)
})

test('a script that begins its runs one after the other is read as on this machine', async () => {
  const found = await run({
    'script.ts': `import { setTimeout as sleep } from 'node:timers/promises'
      import { defineAgent, Runners } from MANYWORLDS
      const agent = defineAgent({ name: 'a', run: (n: number) => 2 * n })
      const answers = await Promise.all([0, 500, 1000].map(async (ms) => {
        await sleep(ms)
        return (await Runners.runTask(agent.task(ms), CONFIG)).answer
      }))
      console.log(JSON.stringify(answers))`,
  })
  expect(found).toEqual([0, 1000, 2000])
})

test('a script that goes on taking work is refused as on this machine', async () => {
  const found = await run({
    'script.ts': `import { defineAgent, Runners } from MANYWORLDS
      const agent = defineAgent({ name: 'a', run: (n: number) => 2 * n })
      const timer = setInterval(async () => {
        try {
          await Runners.runTask(agent.task(1), CONFIG)
        } catch (error) {
          console.log(JSON.stringify([error.code, error.message.includes(process.cwd() + '/script.ts:5:')]))
          process.exit()
        }
      }, 50)`,
  })
  expect(found).toEqual(['RUNNERS_IN_WORKER', true])
})
