import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Runners } from '../../dist/index.js'
import { hesitant, lastDigit } from '../agents/export-agents.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { type ModelServer, startModelServer } from '../models/scripted-server.ts'
import { storeFolder } from '../store/store-folder.ts'
import { DATASETS_SET_UP_MS, readWithPython, whyNoDatasets } from './datasets.ts'

interface Message {
  readonly role: string
  readonly content: string
}

interface Line {
  readonly messages: readonly Message[]
  readonly prompt: readonly Message[]
  readonly chosen: readonly Message[]
  readonly rejected: readonly Message[]
  readonly tools?: readonly object[]
  readonly score_chosen: number
  readonly score_rejected: number
}

const linesOf = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line)
const lastSaid = (lines: readonly Line[]) => lines.map(({ messages }) => messages.at(-1)!.content).sort()

interface Rollout {
  readonly reward: number | null
  readonly said: string
  readonly question?: string
  readonly split?: string
}

/** A run of groups of rollouts, as another system had them: each with a call of a tool before its answer. */
async function importedRun(groups: Readonly<Record<string, readonly Rollout[]>>) {
  const { store } = storeFolder()
  const documents = Object.entries(groups).flatMap(([id, rollouts]) =>
    rollouts.map(({ reward, said, question = `question ${id}`, split }, place) => {
      const call = { tool_call_id: `${id}-${place}`, function_name: 'add', arguments: { a: place } }
      return {
        ...{ schema_version: 'ATIF-v1.7', session_id: 's', trajectory_id: `${id}@${place + 1}` },
        agent: {
          ...{ name: 'clerk', version: '1', model_name: 'm' },
          tool_definitions: [{ type: 'function', function: { name: 'add', parameters: { type: 'object' } } }],
        },
        extra: { reward, manyworlds: { group: { id }, rollout: place + 1, meta: { split }, split } },
        steps: [
          { step_id: 1, source: 'user', message: question },
          {
            ...{ step_id: 2, source: 'agent', message: '', tool_calls: [call] },
            observation: { results: [{ source_call_id: call.tool_call_id, content: String(place) }] },
          },
          { step_id: 3, source: 'agent', message: said },
        ],
      }
    }),
  )
  const file = join(store, 'in.jsonl')
  writeFileSync(file, documents.map((document) => JSON.stringify(document)).join('\n'))
  const imported = await manyworlds(['import', file, '--dir', store, '--run-id', 'r'])
  expect(imported).toMatchObject({ code: 0 })
  const run = (...words: string[]) => manyworlds(['export', 'r', '--dir', store, ...words])
  return { store, run, out: (name: string) => join(store, name) }
}

const rewards = (...list: (number | null)[]): Rollout[] =>
  list.map((reward, place) => ({ reward, said: `${place + 1} for ${reward}` }))

describe('export --best: rejection sampling', () => {
  it('has of each group the rollouts with the highest reward, all of equals or so many', async () => {
    const { run } = await importedRun({ a: rewards(0, 1, 0.5, 1), b: rewards(0.2, 0.1), c: rewards(null, null) })
    const all = await run('--format', 'sft', '--best')
    expect(lastSaid(linesOf(all.stdout))).toEqual(['1 for 0.2', '2 for 1', '4 for 1'])
    expect(all.stderr).toBe('5 trajectories left out: 5 were not the best of their groups (--best)\n')
    const one = await run('--format', 'sft', '--best', '--per-group', '1')
    expect(lastSaid(linesOf(one.stdout))).toEqual(['1 for 0.2', '2 for 1'])
    const good = await run('--format', 'sft', '--best', '--min-reward', '0.5')
    expect(lastSaid(linesOf(good.stdout))).toEqual(['2 for 1', '4 for 1'])
    expect(good.stderr).toBe(
      '6 trajectories left out: 5 have a lower reward, or none (--min-reward); 1 was not the best of its group (--best)\n',
    )
    const none = await run('--format', 'sft', '--best', '--min-reward', '5')
    expect(none.stderr).toContain('8 have a lower reward, or none (--min-reward)')
    const every = await run('--format', 'sft')
    expect(linesOf(every.stdout)).toHaveLength(8)
  })

  it('chooses of rows of tokens and documents as well, and is refused where it would change nothing', async () => {
    const { run } = await importedRun({ a: rewards(0, 1) })
    const documents = await run('--format', 'atif', '--best')
    expect(documents.stdout.trim().split('\n')).toHaveLength(1)
    for (const words of [
      ['--format', 'jsonl', '--best'],
      ['--format', 'preference', '--best'],
      ['--format', 'sft', '--per-group', '1'],
      ['--format', 'sft', '--min-margin', '1'],
    ])
      expect(await run(...words)).toMatchObject({ code: 2, stdout: '' })
  })

  describe('of a real run', () => {
    let server: ModelServer
    beforeAll(async () => {
      server = await startModelServer({ seed: 3 })
    })
    afterAll(async () => {
      await Runners.shutdown()
      await server.close()
    })

    it('never has a rollout that failed, nor one that nobody graded', async () => {
      const { store } = storeFolder()
      const models = { m: { baseURL: server.baseURL, model: 'text' } }
      const tasks = [hesitant.task('q', { id: 'q' }), hesitant.task('always', { id: 'fails' })]
      await Runners.runTask(tasks, { workerNum: 1, store, runId: 'r', rollouts: 4, models, grade: lastDigit })
      const best = await manyworlds(['export', 'r', '--dir', store, '--format', 'sft', '--best'])
      // The fourth rollout, whose reward would be the highest, failed.
      expect(linesOf(best.stdout).map(({ messages }) => messages[0]!.content)).toEqual(['q of q@3'])
      const pairs = await manyworlds(['export', 'r', '--dir', store, '--format', 'preference'])
      expect(pairs).toMatchObject({ code: 0, stdout: '' })
      expect(pairs.stderr).toContain('2 start differently from the trajectory they would be paired with')
    })
  })
})

describe('export --format preference', () => {
  it('has the best of each group beside the worst, with what both began with as the prompt', async () => {
    const { run } = await importedRun({
      a: rewards(0.5, 0, 1, 0),
      same: rewards(1, 1),
      alone: rewards(1),
      unknown: rewards(1, null),
    })
    const { stdout, stderr } = await run('--format', 'preference')
    const [line, ...more] = linesOf(stdout)
    expect(more).toEqual([])
    expect(line!.prompt).toEqual([{ role: 'user', content: 'question a' }])
    expect(line!.chosen.map(({ role }) => role)).toEqual(['assistant', 'tool', 'assistant'])
    expect(line!.chosen.at(-1)).toEqual({ role: 'assistant', content: '3 for 1' })
    expect(line!.rejected.at(-1)).toEqual({ role: 'assistant', content: '2 for 0' })
    expect(line).toMatchObject({ score_chosen: 1, score_rejected: 0, tools: [{ function: { name: 'add' } }] })
    expect(stderr).toBe(
      '7 trajectories left out: 5 are in groups without two rewards that differ enough; 2 were neither the best nor the worst of their groups\n',
    )
  })

  it('asks for a margin, and for a best one that is good enough', async () => {
    const { run, out } = await importedRun({ near: rewards(0.4, 0.6), far: rewards(0, 0.9), bad: rewards(-3, 0) })
    const wide = await run('--format', 'preference', '--min-margin', '0.5', '--out', out('pairs.jsonl'))
    expect(wide.stderr).toMatch(/^2 pairs of run r: /)
    const good = linesOf((await run('--format', 'preference', '--min-reward', '0.5')).stdout)
    expect(good.map(({ score_chosen, score_rejected }) => [score_chosen, score_rejected]).sort()).toEqual([
      [0.6, 0.4],
      [0.9, 0],
    ])
    expect(await run('--format', 'preference', '--out', out('pairs.parquet'))).toMatchObject({ code: 2 })
  })

  it('makes no pair of different questions', async () => {
    const { run } = await importedRun({
      a: [
        { reward: 1, said: 'one', question: 'this' },
        { reward: 0, said: 'two', question: 'that' },
      ],
    })
    const { stdout, stderr } = await run('--format', 'preference')
    expect(stdout).toBe('')
    expect(stderr).toBe('2 trajectories left out: 2 start differently from the trajectory they would be paired with\n')
  })

  it('is loaded by datasets', { timeout: DATASETS_SET_UP_MS }, async ({ skip }) => {
    if ((await whyNoDatasets()) !== undefined) skip()
    const { run, out, store } = await importedRun({ a: rewards(0, 1), b: rewards(1, 0) })
    await run('--format', 'preference', '--out', out('pairs.jsonl'))
    await run('--format', 'sft', '--best', '--out', out('best.jsonl'))
    const files = { 'pairs.jsonl': out('pairs.jsonl'), 'best.jsonl': out('best.jsonl') }
    const found = (await readWithPython(files, store)) as unknown as Record<string, { columns: string[]; rows: Line[] }>
    expect(found['pairs.jsonl']!.columns).toEqual([
      ...['prompt', 'chosen', 'rejected', 'tools', 'score_chosen', 'score_rejected'],
    ])
    expect(found['pairs.jsonl']!.rows.map(({ chosen }) => chosen.at(-1)!.content).sort()).toEqual([
      '1 for 1',
      '2 for 1',
    ])
    expect(lastSaid(found['best.jsonl']!.rows)).toEqual(['1 for 1', '2 for 1'])
  })
})
