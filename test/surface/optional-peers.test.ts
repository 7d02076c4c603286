import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { nodeForTest } from '../cli/background.ts'
import { packedProject } from './packed-project.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const { peerDependencies, exports } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
  peerDependencies: Record<string, string>
  exports: Record<string, unknown>
}
const versioned = (name: string) => `${name}@${peerDependencies[name]}`
const quoted = (word: string) => (/[^\w./:@+=,-]/.test(word) ? `'${word}'` : word)

const BUNDLER = ['esbuild']
const SPARK = ['@connectrpc/connect', '@connectrpc/connect-node', '@bufbuild/protobuf', '@uwdata/flechette']
const command = (names: readonly string[]) => `npm install ${names.map((name) => quoted(versioned(name))).join(' ')}`

/** Prints the code and the message of what is thrown, and how much of the work was begun. */
const attempt = (imports: string, call: string) => `
import { defineAgent, Runners } from 'manyworlds'
${imports}
const double = defineAgent({ name: 'double', run: async (n) => 2 * n })
let read = 0
function* tasks() {
  read++
  yield double.task(21)
}
try {
  ${call}
} catch (error) {
  console.log(error.code, error.message)
}
console.log('tasks read:', read)
await Runners.shutdown()`

const runOn = (config: string) => attempt('', `await Runners.runTask(tasks(), ${config})`)
const spark = (name: string, options: string) =>
  attempt(`import { ${name} } from 'manyworlds/spark'`, `${name}(${options})`)

const NODES = `{ engineName: 'nodes', nodes: { addresses: ['127.0.0.1:1'], waitMs: 100 } }`
const REMOTE = `spark: { remote: 'sc://127.0.0.1:1' }`

describe('installed without optional packages', () => {
  const project = packedProject()
  afterAll(() => project.remove())

  it('runs tasks on this machine', async () => {
    const ended = await project.run(`
      import { defineAgent, Runners } from 'manyworlds'
      const double = defineAgent({ name: 'double', run: async (n) => 2 * n })
      console.log((await Runners.runTask(double.task(21))).answer)`)
    expect(ended).toMatchObject({ code: 0, stdout: '42\n', stderr: '' })
  })

  it.each(Object.keys(exports).filter((path) => path !== './package.json' && path !== './vitest'))(
    'imports %s',
    async (path) => {
      const ended = await project.run(`await import('manyworlds${path.slice(1)}'); console.log('loaded')`)
      expect(ended).toMatchObject({ code: 0, stdout: 'loaded\n', stderr: '' })
    },
  )

  it.each([
    ['the nodes engine', BUNDLER, runOn(NODES)],
    ['the Ray engine', BUNDLER, runOn(`{ engineName: 'ray', inLocal: true }`)],
    ['the Spark engine', [...BUNDLER, ...SPARK], runOn(`{ engineName: 'spark', ${REMOTE} }`)],
    ['sparkTasks', SPARK, spark('sparkTasks', `{ table: 't', id: 'id', agent: double, ${REMOTE} }`)],
    ['sparkRows', SPARK, spark('sparkRows', `{ table: 't', ${REMOTE} }`)],
    ['sparkSink', SPARK, spark('sparkSink', `{ table: 't', ${REMOTE} }`)],
  ])('%s says what to install, before any work starts', async (feature, packages, script) => {
    const { stdout, stderr } = await project.run(script)
    const needs = packages.length === 1 ? 'a package that is' : 'packages that are'
    expect(stdout, stderr).toBe(
      `PACKAGE_MISSING ${feature} needs ${needs} not installed: ${command(packages)}\ntasks read: 0\n`,
    )
  })

  it('manyworlds doctor says what to install for which engine', async () => {
    const { stdout } = await project.manyworlds('doctor', '--json')
    const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; advice?: string }[] }
    const found = (name: string) => checks.find((check) => check.name === name)
    expect(found('esbuild')).toMatchObject({ status: 'missing', advice: expect.stringContaining(command(BUNDLER)) })
    expect(found('Spark Connect')).toMatchObject({ status: 'missing', advice: expect.stringContaining(command(SPARK)) })
    const asked = await project.manyworlds('doctor', '--json', '--spark-remote', 'sc://127.0.0.1:1')
    expect(asked.stdout).toContain(`asking a Spark cluster needs packages that are not installed: ${command(SPARK)}`)
  })

  it('type-checks, with libraries checked as well', { timeout: 240_000 }, () => {
    project.install('@types/node', 'undici-types')
    const paths = Object.keys(exports).filter((path) => path !== './package.json' && path !== './vitest')
    const imports = paths.map((path, index) => `export * as m${index} from 'manyworlds${path.slice(1)}'`)
    writeFileSync(join(project.folder, 'all.ts'), imports.join('\n'))
    const flags = [
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2024',
      '--lib',
      'esnext',
      '--types',
      'node',
    ]
    const tsc = join(repository, 'node_modules/.bin/tsc')
    expect(run(tsc, [...flags, '--skipLibCheck', 'false', 'all.ts'], project.folder)).toBe('')
  })
})

describe('installed with the packages of an engine', () => {
  it('nodes need esbuild alone, and Spark gets as far as the cluster', { timeout: 180_000 }, async () => {
    const project = packedProject()
    try {
      project.install(...BUNDLER, '@esbuild')
      const node = await nodeForTest()
      const ended = await project.run(`
        import { defineAgent, Runners } from 'manyworlds'
        const double = defineAgent({ name: 'double', run: async (n) => 2 * n })
        const nodes = { addresses: ['${node.address}'] }
        console.log((await Runners.runTask(double.task(21), { engineName: 'nodes', nodes })).answer)
        await Runners.shutdown()`)
      expect(ended.stdout, ended.stderr).toBe('42\n')
      const sparkless = await project.run(runOn(`{ engineName: 'spark', ${REMOTE} }`))
      expect(sparkless.stdout).toContain(`not installed: ${command(SPARK)}\n`)

      project.install(...SPARK)
      const there = await project.run(runOn(`{ engineName: 'spark', ${REMOTE} }`))
      expect(there.stdout, there.stderr).toMatch(/^SPARK_\w+ .*127\.0\.0\.1:1/)
    } finally {
      project.remove()
    }
  })
})

/** What of the package loads a peer, and which: the rest works without. */
it('only the Spark engine imports Spark Connect and Arrow, and only the bundler esbuild', () => {
  const dist = resolve(repository, 'dist')
  const importers = (names: readonly string[]) => {
    const pattern = new RegExp(`(?:from|import|require)\\s*\\(?\\s*['"](${names.join('|')})(/[^'"]*)?['"]`)
    return globSync('**/*.js', { cwd: dist }).filter((path) => pattern.test(readFileSync(resolve(dist, path), 'utf8')))
  }
  expect(importers(SPARK).filter((path) => !path.startsWith('engines/spark/connect/'))).toEqual([])
  // It is imported by a name that bundlers do not see.
  expect(importers(BUNDLER)).toEqual([])
})

function run(program: string, args: readonly string[], cwd: string): string {
  try {
    return execFileSync(program, args, { cwd, encoding: 'utf8' })
  } catch (error) {
    return (error as { stdout: string }).stdout
  }
}
