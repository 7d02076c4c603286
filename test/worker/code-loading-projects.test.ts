import { symlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { expectOneError, printed, runScript } from '../support/run-script.ts'
import { userProject } from '../support/user-project.ts'

const COMMONJS = `
  const { defineAgent, Runners } = require('manyworlds')
  const { triple } = require('./agents.cjs')
  const double = defineAgent({ name: 'double', run: async (input) => input * 2 })
  async function main() {
    const responses = await Runners.runTask([double.task(2), triple.task(2)])
    console.log(JSON.stringify([...responses.values()].map((response) => response.answer)))
  }
  main()`
const AGENTS_CJS = `
  const { defineAgent } = require('manyworlds')
  exports.triple = defineAgent({ name: 'triple', run: async (input) => input * 3 })`
const MODULE = `
  import { defineAgent, Runners } from 'manyworlds'
  const double = defineAgent({ name: 'double', run: async (input) => input * 2 })
  console.log(JSON.stringify((await Runners.runTask(double.task(2))).answer))`

describe('scripts of all kinds', () => {
  const kinds: [file: string, files: Record<string, string>, expected: unknown][] = [
    ['main.cjs', { 'main.cjs': COMMONJS, 'agents.cjs': AGENTS_CJS }, [4, 6]],
    ['main.js', { 'main.js': COMMONJS, 'agents.cjs': AGENTS_CJS, 'package.json': '{"type":"commonjs"}' }, [4, 6]],
    ['main.cts', { 'main.cts': COMMONJS.replace('(input)', '(input: number)'), 'agents.cjs': AGENTS_CJS }, [4, 6]],
    ['main.mjs', { 'main.mjs': MODULE }, 4],
    ['main.js', { 'main.js': MODULE, 'package.json': '{"type":"module"}' }, 4],
    ['main.ts', { 'main.ts': MODULE.replace('(input)', '(input: number)') }, 4],
    ['a folder with ünusual näme/main #1.mjs', { 'a folder with ünusual näme/main #1.mjs': MODULE }, 4],
  ]
  test.each(kinds)('%s', async (file, files, expected) => {
    const ended = await runScript(userProject(files)(file))
    expect(printed(ended), ended.stderr).toEqual([expected])
    expect(ended.code).toBe(0)
    expect(ended.stderr.replace(/^.*(MODULE_TYPELESS|trace-warnings|Reparsing|eliminate).*\n/gm, '')).toBe('')
  })

  test('one that is started without its extension, by its folder, or through a link', async () => {
    // The agent is made by a module that does not know who calls it: workers need the script itself.
    const factory = `
      const { defineAgent } = require('manyworlds')
      exports.make = (name) => defineAgent({ name, run: async (input) => input * 2 })`
    const main = `
      const { Runners } = require('manyworlds')
      const made = require('./factory.js').make('made')
      Runners.runTask(made.task(2)).then(({ answer }) => console.log(JSON.stringify(answer)))`
    const at = userProject({ 'factory.js': factory, 'index.js': main, 'package.json': '{"type":"commonjs"}' })
    symlinkSync(at('index.js'), at('link.js'))
    for (const started of ['index', '.', 'link.js', 'index.js']) {
      const ended = await runScript(undefined, { args: [started], cwd: at('.') })
      expect(printed(ended), `node ${started}: ${ended.stderr}`).toEqual([4])
    }
  })
})

describe('agents that workers cannot load', () => {
  test('a syntax error in the agent’s module that only workers meet', async () => {
    const at = userProject({
      'main.mjs': `
        import { writeFileSync } from 'node:fs'
        import { Runners } from 'manyworlds'
        import { agent } from './agent.mjs'
        writeFileSync(new URL('./agent.mjs', import.meta.url), 'export const agent = {{')
        await Runners.runTask(agent.task(1))`,
      'agent.mjs': `
        import { defineAgent } from 'manyworlds'
        export const agent = defineAgent({ name: 'broken', run: async () => 1 })`,
    })
    const ended = await runScript(at('main.mjs'))
    expect(ended.stderr).toContain('AGENT_LOAD_FAILED')
    for (const word of ["'broken'", 'agent.mjs', 'SyntaxError']) expect(ended.stderr).toContain(word)
    expect(ended.code).toBe(1)
  })

  test('a module that was changed after the driver had read it', async () => {
    const text = (answer: number) =>
      `import { defineAgent } from 'manyworlds'\nexport const agent = defineAgent({ name: 'a', run: async () => ${answer} })`
    const at = userProject({
      'main.mjs': `
        import { writeFileSync } from 'node:fs'
        import { Runners } from 'manyworlds'
        import { agent } from './agent.mjs'
        writeFileSync(new URL('./agent.mjs', import.meta.url), ${JSON.stringify(text(2))})
        console.log((await Runners.runTask(agent.task(1))).answer)`,
      'agent.mjs': text(1),
    })
    const ended = await runScript(at('main.mjs'))
    expect(ended.stdout).toBe('')
    expectOneError(ended, 'AGENT_MISMATCH', "'a'", 'changed after the driver started')
  })

  test('an agent whose file was removed', async () => {
    const at = userProject({
      'main.mjs': `
        import { rmSync } from 'node:fs'
        import { Runners } from 'manyworlds'
        import { agent } from './agent.mjs'
        rmSync(new URL('./agent.mjs', import.meta.url))
        await Runners.runTask(agent.task(1))`,
      'agent.mjs': `
        import { defineAgent } from 'manyworlds'
        export const agent = defineAgent({ name: 'gone', run: async () => 1 })`,
    })
    const ended = await runScript(at('main.mjs'))
    expect(ended.stderr).toContain('AGENT_LOAD_FAILED')
    for (const word of ["'gone'", 'agent.mjs', 'Cannot find module']) expect(ended.stderr).toContain(word)
    expect(ended.code).toBe(1)
  })
})

test('a mended module is read anew by the next run of the same program', async () => {
  const agent = (body: string) =>
    `import { defineAgent, isWorker } from 'manyworlds'\n${body}\nexport const agent = defineAgent({ name: 'a', run: async () => 'mended' })`
  const at = userProject({
    'main.mjs': `
      import { writeFileSync } from 'node:fs'
      import { Runners } from 'manyworlds'
      import { agent } from './agent.mjs'
      await Runners.runTask(agent.task(1)).catch((error) => console.log(JSON.stringify(error.code)))
      writeFileSync(new URL('./agent.mjs', import.meta.url), ${JSON.stringify(agent(''))})
      console.log(JSON.stringify((await Runners.runTask(agent.task(1))).answer))`,
    'agent.mjs': agent("if (isWorker) throw new Error('broken')"),
  })
  const ended = await runScript(at('main.mjs'))
  expect(printed(ended), ended.stderr).toEqual(['AGENT_LOAD_FAILED', 'mended'])
  expect(ended.code).toBe(0)
})

test('a main() that catches and exits does so in the driver only', async () => {
  const at = userProject({
    'main.mjs': `
      import { defineAgent, Runners } from 'manyworlds'
      const agent = defineAgent({ name: 'a', run: async (input) => input })
      async function main() {
        const response = Runners.syncRunTask([agent.task('fine')]).get('#1')
        console.log(JSON.stringify(response.answer))
      }
      main().catch((error) => {
        console.error('failed', error)
        process.exit(1)
      })`,
  })
  const ended = await runScript(at('main.mjs'))
  expect(printed(ended), ended.stderr).toEqual(['fine'])
  expect(ended).toMatchObject({ code: 0, stderr: '' })
})

test('a script that ends itself, or fails where nobody waits, does so in the driver only', async () => {
  const at = userProject({
    'main.mjs': `
      import { defineAgent, Runners } from 'manyworlds'
      const agent = defineAgent({ name: 'a', run: async (input) => input })
      async function main() {
        console.log(JSON.stringify(Runners.syncRunTask([agent.task('fine')]).get('#1').answer))
      }
      main()
      setTimeout(() => process.exit(3), 1000)`,
  })
  const ended = await runScript(at('main.mjs'))
  expect(printed(ended), ended.stderr).toEqual(['fine'])
  expect(ended).toMatchObject({ code: 3, stderr: '' })
})
