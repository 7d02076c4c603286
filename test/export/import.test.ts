import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkTrajectory, messagesOf, RunFile, type Trajectory } from '../../dist/store/index.js'
import { checkAtif, withoutNulls } from '../../src/export/atif/check.ts'
import { toAtif } from '../../src/export/atif/to-atif.ts'
import { fromDocument } from '../../src/import/from-document.ts'
import type { ImportedTrajectory } from '../../src/import/imported-trajectory.ts'
import { importTrajectories } from '../../src/store/import-trajectories.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { storeFolder } from '../store/store-folder.ts'
import { atifDocuments } from './atif-documents.ts'
import { brokenRules } from './atif-rules.ts'

function folder() {
  const { store } = storeFolder()
  const file = (name: string, ...documents: readonly object[]) => {
    const path = join(store, name)
    writeFileSync(path, documents.map((one) => JSON.stringify(one)).join('\n'))
    return path
  }
  const imported = (...words: string[]) => manyworlds(['import', ...words, '--dir', store])
  const exported = async (...words: string[]) => {
    const { stdout, stderr } = await manyworlds(['export', 'last', '--dir', store, ...words])
    return {
      rows: stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
      stderr,
    }
  }
  const trajectories = async () => {
    using run = RunFile.open('last', { store })
    const found: Trajectory[] = []
    for await (const trajectory of run.trajectories()) found.push(trajectory)
    return found
  }
  return { store, file, imported, exported, trajectories }
}

const agent = {
  name: 'claude',
  version: '2',
  model_name: 'm',
  tool_definitions: [{ type: 'function', function: { name: 'add' } }],
}

/** Two turns, the second of which goes on with the tokens of the first. */
const document = {
  ...{ schema_version: 'ATIF-v1.7', session_id: 's', trajectory_id: 'q1', agent, extra: { reward: 0.5, level: 3 } },
  steps: [
    { step_id: 1, source: 'system', message: 'Add.' },
    { step_id: 2, source: 'user', message: '1 + 2?' },
    {
      ...{ step_id: 3, source: 'agent', message: '', timestamp: '2026-01-01T00:00:00Z', reasoning_content: 'hm' },
      tool_calls: [{ tool_call_id: 'c1', function_name: 'add', arguments: { a: 1, b: 2 } }],
      observation: { results: [{ source_call_id: 'c1', content: '3' }] },
      metrics: {
        ...{ prompt_tokens: 3, completion_tokens: 2, prompt_token_ids: [1, 2, 3], completion_token_ids: [4, 5] },
        ...{ logprobs: [-0.1, -0.2], extra: { temperature: 1 } },
      },
    },
    {
      ...{ step_id: 4, source: 'agent', message: '3', extra: { note: 'x' } },
      metrics: {
        ...{ prompt_token_ids: [1, 2, 3, 4, 5, 6], completion_token_ids: [7], logprobs: [-0.3] },
        extra: { temperature: 1 },
      },
    },
  ],
}

describe('manyworlds import', () => {
  it('makes a run of ATIF that can be shown, exported for training, and exported as it was', async () => {
    const { file, imported, exported, trajectories, store } = folder()
    const path = file('in.jsonl', document, { ...document, trajectory_id: 'q2', extra: { reward: 1, success: true } })
    const { code, stderr } = await imported(path, '--run-id', 'from-harbor')
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^imported 2 trajectories from .* as run from-harbor of /),
    })
    const [first] = await trajectories()
    expect(checkTrajectory(first!)).toEqual([])
    expect(first).toMatchObject({ id: 'q1', agent: 'claude', input: '1 + 2?', answer: '3', grade: { reward: 0.5 } })
    const last = first!.steps.findLast((step) => step.kind === 'model')!
    expect(messagesOf(first!.steps, last).map(({ role }) => role)).toEqual([
      ...['system', 'user', 'assistant', 'tool', 'assistant'],
    ])
    expect((await exported('--format', 'atif')).rows[0]).toEqual(document)
    const { rows } = await exported('--format', 'verl')
    expect(rows).toHaveLength(2)
    expect(rows[0]).toMatchObject({
      ...{ prompt_ids: [1, 2, 3], response_ids: [4, 5, 6, 7], response_mask: [1, 1, 0, 1] },
      ...{ response_logprobs: [-0.1, -0.2, 0, -0.3], reward_score: 0.5, num_turns: 4 },
    })
    const [sft] = (await exported('--format', 'sft', '--only-success')).rows
    expect(sft.tools).toEqual(agent.tool_definitions)
    expect(sft.messages[2]).toMatchObject({ role: 'assistant', reasoning_content: 'hm', tool_calls: [{ id: 'c1' }] })
    expect((await manyworlds(['show', 'from-harbor', '--dir', store])).stdout).toContain('2')
  })

  it('a round trip through the store loses nothing that ATIF can hold', { timeout: 300_000 }, async () => {
    const { store } = storeFolder()
    const path = join(store, 'store.sqlite')
    let runs = 0
    await fc.assert(
      fc.asyncProperty(fc.array(atifDocuments, { minLength: 1, maxLength: 3 }), async (documents) => {
        const read = documents.map((one, place) => {
          // JSON has no -0.
          const whole = withoutNulls(JSON.parse(JSON.stringify({ ...one, trajectory_id: `t${place}` })))
          expect(checkAtif(whole)).toEqual([])
          return whole as never
        })
        const runId = `run-${++runs}`
        const options = { runId, source: 'x', signal: new AbortController().signal }
        await importTrajectories({ path, shared: true }, each(read.map((one) => fromDocument(one, 'x'))), options)
        using run = RunFile.open(runId, { store })
        const back: unknown[] = []
        for await (const trajectory of run.trajectories()) {
          expect(checkTrajectory(trajectory)).toEqual([])
          back.push(JSON.parse(JSON.stringify(toAtif(trajectory as never))))
        }
        expect(back).toEqual(read)
      }),
      { numRuns: 60 },
    )
  })

  it('reads a JSON file, a list of documents, and a folder of them', async () => {
    const { store, imported, exported } = folder()
    const other = { ...document, trajectory_id: 'q2' }
    writeFileSync(join(store, 'one.json'), JSON.stringify(document, null, 2))
    writeFileSync(join(store, 'two.json'), JSON.stringify([document, other]))
    mkdirSync(join(store, 'many'))
    writeFileSync(join(store, 'many', 'a.json'), JSON.stringify(document))
    writeFileSync(join(store, 'many', 'b.json'), JSON.stringify(other))
    for (const [name, count] of [
      ['one.json', 1],
      ['two.json', 2],
      ['many', 2],
    ] as const) {
      expect((await imported(join(store, name))).code).toBe(0)
      const { rows } = await exported('--format', 'atif')
      expect(rows).toEqual([document, other].slice(0, count))
    }
  })

  it('reads conversations as OpenAI and TRL have them, and gives them back', async () => {
    const { file, imported, exported, trajectories } = folder()
    const tools = [{ type: 'function', function: { name: 'add', parameters: { type: 'object' } } }]
    const call = { id: 'c', type: 'function', function: { name: 'add', arguments: '{"a": 1}' } }
    const conversation = {
      messages: [
        { role: 'system', content: 'Add.' },
        { role: 'user', content: [{ type: 'text', text: 'go' }] },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c', content: '1' },
        { role: 'assistant', content: 'one' },
        { role: 'user', content: 'again' },
        { role: 'assistant', content: 'two' },
      ],
      tools,
    }
    const path = file('in.jsonl', { ...conversation, split: 'train', level: 2, reward: 1 })
    expect((await imported(path)).code).toBe(0)
    const [trajectory] = await trajectories()
    expect(trajectory).toMatchObject({
      id: '#1',
      answer: 'two',
      split: 'train',
      meta: { level: 2 },
      grade: { reward: 1 },
    })
    expect(checkTrajectory(trajectory!)).toEqual([])
    expect((await exported('--format', 'sft')).rows).toEqual([conversation])
    const { rows, stderr } = await exported('--format', 'verl')
    expect([rows, stderr]).toEqual([[], '1 trajectory left out: 1 has no token ids\n'])
    expect(brokenRules((await exported('--format', 'atif')).rows[0])).toEqual([])
  })

  it('our own exports come back with what ATIF has no field for', async () => {
    const { file, imported, exported } = folder()
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'ho' },
    ]
    await imported(file('in.jsonl', { messages, id: 'mine', level: 7, reward: 0.25 }))
    const { rows } = await exported('--format', 'atif')
    await imported(file('again.jsonl', ...rows))
    const again = await exported('--format', 'jsonl', '--what', 'responses')
    expect(again.rows[0]).toMatchObject({ id: 'mine', answer: 'ho', grade: { reward: 0.25 } })
    expect((await exported('--format', 'jsonl', '--what', 'tasks')).rows[0]).toMatchObject({
      ...{ input: 'hi', info: { metadata: { level: 7 } } },
    })
    expect((await exported('--format', 'atif')).rows).toEqual(rows)
  })

  const [, , third] = document.steps
  const broken: readonly [why: string, document: object, words: string][] = [
    ['a gap in the numbers', { ...document, steps: [{ ...third, step_id: 2 }] }, '`steps[0].step_id` must be 1'],
    ['no steps', { ...document, steps: [] }, '`steps` must have at least one step'],
    [
      'a user with calls',
      { ...document, steps: [{ ...third, step_id: 1, source: 'user' }] },
      'allowed only in steps of the agent',
    ],
    [
      'a result of no call',
      { ...document, steps: [{ ...third, step_id: 1, tool_calls: [] }] },
      '`steps[0].observation.results[0].source_call_id` does not match any call of that step',
    ],
    ['another version', { ...document, schema_version: 'ATIF-v2.0' }, "must be 'ATIF-v1.7'"],
    [
      'sub-agents without ids',
      { ...document, subagent_trajectories: [{ ...document, trajectory_id: undefined }] },
      'must have a trajectory_id',
    ],
    [
      'an impossible log-probability',
      { ...document, steps: [{ ...third, step_id: 1, metrics: { completion_token_ids: [1], logprobs: [3] } }] },
      'an impossible log-probability',
    ],
    ['conversations without a reply', { messages: [{ role: 'user', content: 'x' }] }, 'no message of the assistant'],
    ['something else', { answer: 1 }, 'neither `schema_version` (ATIF) nor `messages` (SFT)'],
  ]
  it.each(broken)('refuses %s, says where, and writes nothing', async (_, wrong, words) => {
    const { file, imported, store } = folder()
    const good = 'messages' in wrong ? { messages: [{ role: 'assistant', content: 'x' }] } : document
    const path = 'answer' in wrong ? file('in.jsonl', wrong) : file('in.jsonl', good, wrong)
    const { code, stderr } = await imported(path)
    expect(code).toBe(1)
    expect(stderr).toContain(`in.jsonl:${'answer' in wrong ? 1 : 2}: `)
    expect(stderr).toContain(words)
    expect(existsSync(join(store, 'store.sqlite'))).toBe(false)
  })

  it('refuses two of the same id, a run that is there, and a file that is not', async () => {
    const { file, imported, store } = folder()
    expect((await imported(file('two.jsonl', document, document))).stderr).toMatch(
      /two\.jsonl:2: its id 'q1' is already used at/,
    )
    const path = file('one.jsonl', document)
    expect((await imported(path, '--run-id', 'x')).code).toBe(0)
    expect(await imported(path, '--run-id', 'x')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("run 'x' already exists in"),
    })
    expect((await imported(path, '--run-id', '../x')).code).toBe(2)
    expect(await imported(join(store, 'none.jsonl'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('ENOENT'),
    })
    expect(RunFile.list({ store })).toEqual(['x'])
  })
})

async function* each(all: readonly ImportedTrajectory[]) {
  yield* all
}
