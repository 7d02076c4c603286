import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { testEngine } from 'manyworlds/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { worldEnvSpec } from '../../dist/agents/worlds/world-packages.js'
import { needsOf as needsOfRay, RAY_VERSION } from '../../dist/engines/ray/environment.js'
import { needsOf as needsOfSpark, SPARK_VERSION } from '../../dist/engines/spark/environment.js'
import { findJava } from '../../dist/engines/spark/java.js'
import { ensureEnvironment } from '../../dist/python/environment.js'
import { startModelServer } from '../models/scripted-server.ts'
import { IN_STORM } from '../support/storm.ts'

const folder = new URL('../../examples/', import.meta.url)
/** They take seconds; a busy machine may take some times as long. */
const EXAMPLE_TIMEOUT_MS = 180_000
/** An environment may have to be made. */
const CLUSTER_TIMEOUT_MS = 400_000

/** What examples on a cluster, or in a world, need. */
const clusters: Record<string, () => Promise<unknown>> = {
  'gymnasium-world.ts': () => ensureEnvironment(worldEnvSpec('gymnasium'), () => {}),
  'laptop-to-ray.ts': () => ensureEnvironment(needsOfRay(RAY_VERSION), () => {}),
  'spark-parquet.ts': async () => {
    findJava()
    await ensureEnvironment(needsOfSpark(SPARK_VERSION), () => {})
  },
}

/** What trains takes a minute, and several on a machine that has other things to do. */
const trainings = new Set(['start.ts', 'tool-desk.ts'])

/** Only the storm runs trainings, and what starts a Ray or a Spark of its own. */
const inStorm = new Set([...trainings, 'laptop-to-ray.ts', 'spark-parquet.ts'])

/** What needs PyTorch: test/heavy/chain-sum.test.ts runs it on request. */
const heavy = new Set(['chain-sum.ts'])

/** What examples with a model call it, and what the scripted server does in its place. */
const models: Record<string, Readonly<Record<string, string>>> = { 'compare-models.ts': { solver: 'tools:1' } }

/** A line that only a run that went well prints. */
const keyLines: Record<string, RegExp> = {
  'compare-models.ts': /^\d+ of 80 answers are right$/m,
  'custom-engine.ts': /^labelled: success, priority 1\d, in worker nice-\d+$/m,
  'data-sets.ts': /^250 rows, 200 questions, none of them in two parts$/m,
  'evaluate.ts': /^careful is better by \d+\.\d points \(95 % interval \d+\.\d to \d+\.\d\)$/m,
  'executor.ts': /^all collected, and the workers are gone$/m,
  'gymnasium-world.ts': /^of 100 walks, \d+ by chance and 75 by the best policy reached the goal$/m,
  'hello.ts': /^task1: What is machine learning\? This is what process \d+ has to say\.$/m,
  'laptop-to-ray.ts': /^60 tasks here and on (a Ray of this machine|the Ray cluster); the answers are identical$/m,
  'many-agents.ts': /^200 of 200 tasks answered, each exactly once; 200 succeeded$/m,
  'own-nodes.ts': /^60 tasks on 2 nodes; the answers are identical$/m,
  'parallel-search.ts': /^aggregatedSearch: 3 hits from 2 of 3 sources$/m,
  'sequence-and-graph.ts':
    /^sequence: another {2}-> agents work one after another$[\s\S]*^graph: offer {4}-> cancelled/m,
  'services.ts': /^rice: 2 \(rice is in, no queue\)\n3 orders, [12] at once at most$/m,
  'spark-parquet.ts': /^10000 rows read back, checksum \d+: as expected$/m,
  'start.ts':
    /^SIGKILL of worker local-\d \(pid \d+\) in update 64 → \d+ rerun, 0 lost, 0 twice\ndigest {4}[0-9a-f]{16}… of 128 updates, the same when undisturbed and without latency$/m,
  'stream.ts': /^12 pages: 8 success, 2 failed, 2 timed out$/m,
  'subtasks.ts': /^panel: optimist: it will sell; critic: nobody reads that; (one process|two processes)$/m,
  'tool-desk.ts': /^epoch 10: 9\d\.\d % of the episodes were solved\ntest: 9\d\.\d %, before training \d\.\d %$/m,
  'typed-params.ts': /^french: BONJOUR ALAN \(set up in the same process: true\)$/m,
}

/** `npm start` fits on a screen. */
const mostLines: Record<string, number> = { 'start.ts': 25 }

/** What an example may say on stderr: nothing, but that something takes time. */
const notices: Record<string, RegExp> = {
  'laptop-to-ray.ts': /^manyworlds: .*(Python|uv|have no place on the Ray cluster yet|Ray did not start in time).*\n/gm,
  'spark-parquet.ts':
    /^manyworlds: .*(Python|uv|starting Spark|Spark is still starting|reading .*'|writing answers to '.*'|has not started a worker yet).*\n/gm,
}

describe('every example runs', () => {
  const isRun = (name: string) => name.endsWith('.ts') && !heavy.has(name) && inStorm.has(name) === IN_STORM
  for (const file of readdirSync(folder).filter(isRun))
    it(file, { timeout: timeoutOf(file) }, async ({ skip }) => {
      const problem = await whyNoCluster(file)
      if (problem !== undefined) {
        process.stderr.write(`\n*** SKIPPED: ${file}, because what it needs cannot be set up here: ${problem} ***\n\n`)
        skip()
      }
      expect(keyLines, `say in this test what ${file} prints`).toHaveProperty([file])
      const { stdout, stderr } = await run(file, await folderFor(file))
      expect(stdout).toMatch(keyLines[file]!)
      expect(stdout.split('\n').length - 1).toBeLessThanOrEqual(mostLines[file] ?? Number.POSITIVE_INFINITY)
      expect(stderr.replaceAll(notices[file] ?? /$^/g, '')).toBe('')
    })
})

describe.runIf(!IN_STORM)('the custom engine', () => {
  const module = new URL('custom-engine/nice-engine.ts', folder)

  it('is written in fewer than 100 lines, with nothing but what users have', () => {
    const source = readFileSync(module, 'utf8')
    expect(source.trimEnd().split('\n').length).toBeLessThan(100)
    const imported = [...source.matchAll(/ from '([^']+)'/g)].map(([, name]) => name)
    expect(imported.filter((name) => !name!.startsWith('node:') && !/^manyworlds(?=$|\/)/.test(name!))).toEqual([])
  })

  // It starts the same processes as the local engine, which is tested by all parts.
  testEngine('nice', { module, export: 'NiceEngine' }, { sideWire: false, parts: ['answers', 'end'] })
})

/** Ray and Spark come from the network the first time. Where CI runs, there is one. */
async function whyNoCluster(file: string): Promise<string | undefined> {
  if (process.env.CI === 'true') return undefined
  try {
    await clusters[file]?.()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

const timeoutOf = (file: string) => (file in clusters || trainings.has(file) ? CLUSTER_TIMEOUT_MS : EXAMPLE_TIMEOUT_MS)

/** Where an example is run, if that matters to it. */
async function folderFor(file: string): Promise<string | undefined> {
  if (file in models) return folderWithModel(models[file]!)
  return trainings.has(file) ? newFolder() : undefined
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mw-example-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Where a user would write down which models there are. */
async function folderWithModel(scenarios: Readonly<Record<string, string>>): Promise<string> {
  const server = await startModelServer()
  onTestFinished(() => server.close())
  const folder = newFolder()
  const settings = Object.entries(scenarios).map(([name, model]) => [name, { baseURL: server.baseURL, model }])
  writeFileSync(join(folder, 'models.json'), JSON.stringify(Object.fromEntries(settings)))
  return folder
}

/** As a user would start it: nothing of the test runner's in its environment. Rejects if its exit code is not 0. */
function run(file: string, cwd?: string): Promise<{ stdout: string; stderr: string }> {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST$|NODE_ENV$)/.test(name)),
  )
  return promisify(execFile)(process.execPath, [fileURLToPath(new URL(file, folder))], {
    env,
    cwd,
    timeout: timeoutOf(file) - 5000,
  })
}
