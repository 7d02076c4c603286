import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { OLDEST_NODE } from '../../src/oldest-node.ts'
import { expectOneError, printed, runScript } from '../support/run-script.ts'
import { userProject } from '../support/user-project.ts'

const agent = (name: string, before: string, answer: string) => `
  import { defineAgent } from 'manyworlds'
  ${before}
  export const agent = defineAgent({ name: '${name}', run: async (input: number) => ${answer} })`

describe('TypeScript that needs more than its types taken out', () => {
  const kinds: Record<string, [before: string, answer: string]> = {
    enum: ['enum E { Two = 2 }', 'input * E.Two'],
    property: ['class C { constructor(readonly n: number) {} }', 'new C(input * 2).n'],
    decorator: [
      'const twice = (f: any) => (n: number) => 2 * f(n); class C { @twice m(n: number) { return n } }',
      'new C().m(input)',
    ],
    'no-extension': ["import { two } from './two'", 'input * two'],
    'other-extension': ["import { two } from './two.js'", 'input * two'],
    alias: ["import { two } from '@/two'", 'input * two'],
    'type-as-value': ["import { Two } from './two.ts'", 'input * (2 as Two)'],
  }
  const files = Object.entries(kinds).map(([name, [before, answer]]) => [`${name}.ts`, agent(name, before, answer)])
  const run = (options: Parameters<typeof runScript>[1]) => {
    const at = userProject({
      ...Object.fromEntries(files),
      'two.ts': 'export const two = 2\nexport type Two = 2',
      'main.mjs': `
        import { Runners } from 'manyworlds'
        if (process.argv[2]) (await import(process.argv[2])).register()
        for (const name of ${JSON.stringify(Object.keys(kinds))}) {
          const { agent } = await import('./' + name + '.ts')
          const running = Runners.runTask(agent.task(2), { store: false, workerNum: 1 })
          const found = await running.then(({ answer }) => answer, ({ code, message }) => ({ code, message }))
          console.log(JSON.stringify([name, found]))
        }`,
      'package.json': '{"type":"module"}',
      'tsconfig.json': '{"compilerOptions":{"target":"es2022","paths":{"@/*":["./*"]}}}',
    })
    return runScript(at('main.mjs'), { ...options, cwd: at('.') })
  }

  test('runs where driver and workers have tsx', async () => {
    const ended = await run({ flags: ['--import', import.meta.resolve('tsx')] })
    expect(printed(ended), ended.stderr).toEqual(Object.keys(kinds).map((name) => [name, 4]))
  })

  test('is an error that names tsx where only the driver has a compiler', async () => {
    const ended = await run({ args: [import.meta.resolve('tsx/esm/api')] })
    const found = printed(ended) as [string, { code: string; message: string }][]
    expect(
      found.map(([name]) => name),
      ended.stderr,
    ).toEqual(Object.keys(kinds))
    for (const [name, { code, message }] of found) {
      expect(code, name).toBe('AGENT_LOAD_FAILED')
      expect(message, name).toContain('`node --import tsx`')
    }
  })

  test('a module that is just wrong gets no such advice', async () => {
    const at = userProject({
      'main.mjs': `
        import { writeFileSync } from 'node:fs'
        import { Runners } from 'manyworlds'
        const { agent } = await import('./agent.ts')
        writeFileSync(new URL('./agent.ts', import.meta.url), 'export const agent = {{')
        await Runners.runTask(agent.task(2), { store: false })`,
      'agent.ts': agent('a', '', '1'),
      'package.json': '{"type":"module"}',
    })
    const ended = await runScript(at('main.mjs'))
    expect(ended.stderr).toContain('AGENT_LOAD_FAILED')
    expect(ended.stderr).not.toContain('tsx')
  })
})

describe('a bundled program', () => {
  const SCRIPT = `
    import { defineAgent, Runners } from 'manyworlds'
    const double = defineAgent({ name: 'double', run: async (input) => 2 * input })
    Runners.runTask(double.task(2), { store: false }).then(({ answer }) => console.log(JSON.stringify(answer)))`
  async function bundled(options: BuildOptions, script = SCRIPT) {
    const at = userProject({ 'main.mjs': script, 'package.json': '{"type":"module"}' })
    const outfile = at(`out/main.${options.format === 'cjs' ? 'cjs' : 'mjs'}`)
    await build({
      entryPoints: [at('main.mjs')],
      outfile,
      bundle: true,
      platform: 'node',
      logLevel: 'silent',
      ...options,
    })
    return runScript(outfile)
  }

  test.each(['esm', 'cjs'] as const)(
    'with this package in it, as %s: one error, which says how to leave it out',
    async (format) => {
      expectOneError(await bundled({ format, external: ['esbuild'] }), 'PACKAGE_BUNDLED', '--external:manyworlds')
    },
  )

  test.each(['esm', 'cjs'] as const)('without it, as %s and minified, it runs', async (format) => {
    const ended = await bundled({ format, external: ['manyworlds'], minify: true })
    expect(printed(ended), ended.stderr).toEqual([4])
  })

  test('whose modules exist only in the bundler is told so', async () => {
    const source = `
      const agent = defineAgent({ name: 'a', run: async () => 1 })
      //# sourceURL=webpack-internal:///(rsc)/./app/route.ts`
    const at = userProject({
      'main.mjs': `import { defineAgent } from 'manyworlds'\nnew Function('defineAgent', ${JSON.stringify(source)})(defineAgent)`,
    })
    const words = ["'a'", 'webpack-internal:///(rsc)/./app/route.ts', 'leaves out']
    expectOneError(await runScript(at('main.mjs')), 'AGENT_MODULE_UNKNOWN', ...words)
  })
})

describe('a Node that is too old', () => {
  const pretend = (where: string) =>
    `data:text/javascript,if (${where}) Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.17.9' } })`

  test.each([
    ['the driver’s', 'process.env.MANYWORLDS_WORKER === undefined', 'NODE_TOO_OLD'],
    ['a worker’s', 'process.env.MANYWORLDS_WORKER !== undefined', 'WORKER_START_FAILED'],
  ])('%s: one error with the version that is needed and the one that is there', async (_, where, code) => {
    const ended = await runScript('one-file.ts', { flags: ['--import', pretend(where)] })
    expectOneError(ended, code, `Node.js ${OLDEST_NODE} or newer`, process.execPath)
  })

  test('is what package.json says', () => {
    const file = fileURLToPath(new URL('../../package.json', import.meta.url))
    const { engines } = JSON.parse(readFileSync(file, 'utf8')) as { engines: { node: string } }
    expect(engines.node).toBe(`>=${OLDEST_NODE}`)
  })
})
