import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { testEngine } from 'manyworlds/testing'
import { describe, expect, it } from 'vitest'

const folder = new URL('../examples/', import.meta.url)
const EXAMPLE_TIMEOUT_MS = 60_000

/** A line that only a run that went well prints. */
const keyLines: Record<string, RegExp> = {
  'custom-engine.ts': /^labelled: success, priority 1\d, in worker nice-\d+$/m,
  'executor.ts': /^all collected, and the workers are gone$/m,
  'hello.ts': /^task1: What is machine learning\? This is what process \d+ has to say\.$/m,
  'many-agents.ts': /^200 of 200 tasks answered, each exactly once; 200 succeeded$/m,
  'own-nodes.ts': /^60 tasks on 2 nodes; the answers are identical$/m,
  'parallel-search.ts': /^aggregatedSearch: 3 hits from 2 of 3 sources$/m,
  'sequence-and-graph.ts':
    /^sequence: another {2}-> agents work one after another$[\s\S]*^graph: offer {4}-> cancelled/m,
  'stream.ts': /^12 pages: 8 success, 2 failed, 2 timed out$/m,
  'subtasks.ts': /^panel: optimist: it will sell; critic: nobody reads that; (one process|two processes)$/m,
  'typed-params.ts': /^french: BONJOUR ALAN \(set up in the same process: true\)$/m,
}

describe('every example runs', () => {
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.ts')))
    it(file, { timeout: EXAMPLE_TIMEOUT_MS }, async () => {
      expect(keyLines, `say in this test what ${file} prints`).toHaveProperty([file])
      const { stdout, stderr } = await run(file)
      expect(stdout).toMatch(keyLines[file]!)
      expect(stderr).toBe('')
    })
})

describe('the custom engine', () => {
  const module = new URL('custom-engine/nice-engine.ts', folder)

  it('is written in fewer than 100 lines, with nothing but what users have', () => {
    const source = readFileSync(module, 'utf8')
    expect(source.trimEnd().split('\n').length).toBeLessThan(100)
    const imported = [...source.matchAll(/ from '([^']+)'/g)].map(([, name]) => name)
    expect(imported.filter((name) => !name!.startsWith('node:') && name !== 'manyworlds')).toEqual([])
  })

  testEngine('nice', { module, export: 'NiceEngine' })
})

/** As a user would start it: nothing of the test runner's in its environment. Rejects if its exit code is not 0. */
function run(file: string): Promise<{ stdout: string; stderr: string }> {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST$|NODE_ENV$)/.test(name)),
  )
  return promisify(execFile)(process.execPath, [fileURLToPath(new URL(file, folder))], {
    env,
    timeout: EXAMPLE_TIMEOUT_MS - 5000,
  })
}
