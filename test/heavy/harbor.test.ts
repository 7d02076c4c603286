import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Runners } from '../../dist/index.js'
import { alternating, boss, porter, sampled } from '../agents/export-agents.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { atifDocuments } from '../export/atif-documents.ts'
import { brokenRules } from '../export/atif-rules.ts'
import { type ModelServer, startModelServer } from '../models/scripted-server.ts'
import { HARBOR } from '../python/environments.ts'
import { PYTHON_SET_UP_MS, pythonOf, runPython, skipped } from '../python/locked.ts'
import { storeFolder } from '../store/store-folder.ts'
import { findPython312 } from './find-python.ts'

let python: string
let why: string | undefined
let server: ModelServer
beforeAll(async () => {
  server = await startModelServer({ seed: 3, dialect: 'vllm' })
  try {
    python = await pythonOf(HARBOR, findPython312())
  } catch (error) {
    // Also under CI: machines without Python 3.12, and without a way to download one, are fine.
    why = skipped(HARBOR.name, (error as Error).message)
  }
}, PYTHON_SET_UP_MS)
afterAll(async () => {
  await Runners.shutdown()
  await server.close()
})

interface Found {
  readonly errors: readonly string[]
  /** The document as harbor writes it. */
  readonly again?: object
}

const validate = (documents: readonly object[]) =>
  runPython(python, new URL('python/validate_atif.py', import.meta.url), {
    input: documents,
    timeoutMs: 240_000,
  }) as Promise<readonly Found[]>

describe('harbor', () => {
  it('finds documents of every kind of agent right, and reads all that is in them', async ({ skip }) => {
    if (why !== undefined) skip(why)
    const { store } = storeFolder()
    const tasks = [
      sampled.task('one', { id: 'one' }),
      boss.task('two', { id: 'two/2' }),
      porter.task(null, { id: 'three' }),
    ]
    const models = { m: { baseURL: server.baseURL, model: 'tools:2', tokens: true, price: { input: 1, output: 2 } } }
    await Runners.runTask(tasks, { workerNum: 1, store, runId: 'all', models, grade: alternating, rollouts: 2 })
    const out = join(store, 'atif.jsonl')
    const { code, stderr } = await manyworlds(['export', 'all', '--dir', store, '--format', 'atif', '--out', out])
    expect({ code, stderr }).toMatchObject({ code: 0 })
    const documents = readFileSync(out, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(documents).toHaveLength(6)
    const found = await validate(documents)
    expect(found.flatMap(({ errors }) => errors)).toEqual([])
    expect(found.map(({ again }) => again)).toEqual(documents)
    // A document that is wrong is found wrong: the validator looks.
    const [first] = documents
    const steps = first!.steps as object[]
    const wrong = { ...first, steps: [...steps, { ...steps[0], step_id: steps.length + 1, tool_calls: [] }] }
    const [broken] = await validate([wrong])
    expect(broken!.errors.length).toBeGreaterThan(0)
    expect(brokenRules(wrong).length).toBeGreaterThan(0)
  })

  it('finds right whatever our own rules, which are stricter, find right', async ({ skip }) => {
    if (why !== undefined) skip(why)
    const documents = fc
      .sample(atifDocuments, { numRuns: 300, seed: 1 })
      .map((document) => ({ ...(document as Record<string, unknown>), schema_version: 'ATIF-v1.7' }))
    const found = await validate(documents)
    const right = found.filter((_, index) => brokenRules(documents[index]!).length === 0)
    expect(right.flatMap(({ errors }) => errors)).toEqual([])
    expect(right.length).toBeGreaterThan(30)
    expect(found.filter(({ errors }) => errors.length > 0).length).toBeGreaterThan(30)
  })
})
