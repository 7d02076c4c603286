import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TOKEN_COLUMNS } from '../../dist/export/experience/token-columns.js'
import { type TokenSample, tokenSamples } from '../../dist/export/experience/token-samples.js'
import { Runners } from '../../dist/index.js'
import { RunFile, type Trajectory, tokenRows, wireRequest } from '../../dist/store/index.js'
import { alternating, boss, byId, porter, sampled } from '../agents/export-agents.ts'
import { asker, leaky } from '../agents/models.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { type ModelServer, startModelServer } from '../models/scripted-server.ts'
import { storeFolder } from '../store/store-folder.ts'
import { made, model, placed } from '../trajectory/made.ts'
import { brokenRules } from './atif-rules.ts'
import { DATASETS_SET_UP_MS, readWithPython, whyNoDatasets } from './datasets.ts'

let server: ModelServer
let noDatasets: string | undefined
beforeAll(async () => {
  noDatasets = await whyNoDatasets()
  server = await startModelServer({ seed: 3, dialect: 'vllm' })
}, DATASETS_SET_UP_MS)
afterAll(async () => {
  await Runners.shutdown()
  await server.close()
})

let runs = 0

async function someRun(tasks: readonly object[], more: object = {}) {
  const { store } = storeFolder()
  const runId = `r${++runs}`
  const m = { baseURL: server.baseURL, model: 'tools:2', tokens: 'processed', price: { input: 1, output: 2 } }
  await Runners.runTask(tasks as never, { workerNum: 1, store, runId, models: { m }, ...more } as never)
  const out = (name: string) => join(store, name)
  const run = (...words: string[]) => manyworlds(['export', runId, '--dir', store, ...words])
  const trajectories: Trajectory[] = []
  using file = RunFile.open(runId, { store })
  for await (const trajectory of file.trajectories()) trajectories.push(trajectory)
  return { store, runId, out, run, trajectories }
}

const linesOf = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
const lines = (path: string) => linesOf(readFileSync(path, 'utf8'))

const FILES = [
  ...(['verl', 'trl', 'prime-rl'] as const).map((format) => [format, `${format}.parquet`] as const),
  ...(['sft', 'atif', 'verl'] as const).map((format) => [format, `${format}.jsonl`] as const),
]

interface Loaded {
  readonly columns: readonly string[]
  readonly rows: readonly Record<string, unknown>[]
}

describe('exports for training', () => {
  it('datasets loads rows of tokens, and they are what the sampler said', { timeout: 300_000 }, async ({ skip }) => {
    if (noDatasets !== undefined) skip()
    const tasks = [sampled.task('one', { id: 'one' }), sampled.task('two', { id: 'two' })]
    const { out, run, runId, trajectories, store } = await someRun(tasks, { rollouts: 2, grade: alternating })
    for (const [format, file] of FILES) {
      const { code, stderr } = await run('--format', format, '--out', out(file))
      // This server's ids of a prompt do not begin with those of the turn before: each turn is a row of its own.
      const said =
        format === 'sft' || format === 'atif' ? /^4 [a-z]+ of run r\d+: .*\n$/ : /^12 rows of tokens of run r\d+: .*\n$/
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(said) })
    }
    const found = (await readWithPython(
      Object.fromEntries(FILES.map(([, file]) => [file, out(file)])),
      store,
    )) as unknown as Record<string, Loaded>
    const [verl, trl, prime] = ['verl', 'trl', 'prime-rl'].map((name) => {
      return found[`${name}.parquet`]!
    })
    expect(found['verl.jsonl']!.rows).toEqual(verl!.rows)
    expect(verl!.columns).toEqual([
      ...['prompt_ids', 'response_ids', 'response_mask', 'response_logprobs', 'reward_score', 'num_turns'],
      'extra_fields',
    ])
    expect(trl!.columns.slice(0, 5)).toEqual(['prompt_ids', 'completion_ids', 'logprobs', 'env_mask', 'reward'])
    expect(prime!.columns.slice(0, 6)).toEqual([
      ...['token_ids', 'mask', 'logprobs', 'temperatures', 'env_name', 'advantages'],
    ])
    const rows = trajectories.flatMap((trajectory) =>
      tokenRows(trajectory).rows.map((row, place) => ({ trajectory, row, place })),
    )
    expect(verl!.rows).toHaveLength(rows.length)
    for (const [at, { trajectory, row, place }] of rows.entries()) {
      const [ids, mask, logProbs] = [Array.from(row.ids), Array.from(row.mask), Array.from(row.logProbs)]
      const start = mask.indexOf(1)
      const { reward } = trajectory.grade!
      expect(start).toBeGreaterThan(0)
      expect(verl!.rows[at]).toMatchObject({
        ...{ prompt_ids: ids.slice(0, start), response_ids: ids.slice(start), response_mask: mask.slice(start) },
        ...{ response_logprobs: logProbs.slice(start), reward_score: reward, num_turns: 2 + 2 * place },
        extra_fields: {
          run_id: runId,
          trajectory_id: trajectory.id,
          task_id: trajectory.task,
          row: place,
          split: null,
        },
      })
      expect(trl!.rows[at]).toMatchObject({
        ...{ prompt_ids: ids.slice(0, start), completion_ids: ids.slice(start), env_mask: mask.slice(start) },
        ...{ logprobs: logProbs.slice(start), reward, rollout: trajectory.rollout, group_id: trajectory.group!.id },
      })
      expect(prime!.rows[at]).toMatchObject({
        ...{ token_ids: ids, mask: mask.map((one) => one === 1), logprobs: logProbs, env_name: 'sampled' },
        ...{ temperatures: ids.map(() => 0.7), advantages: mask.map((one) => (one === 1 ? reward! - 0.5 : 0)) },
      })
    }
    const roles = ['system', 'user', 'assistant', 'tool', 'assistant', 'tool', 'assistant']
    for (const { messages, tools } of found['sft.jsonl']!.rows as { messages: { role: string }[]; tools: never[] }[]) {
      expect(messages.map(({ role }) => role)).toEqual(roles)
      expect(tools[0]).toMatchObject({ type: 'function', function: { name: 'add' } })
    }
    // The models of ATIF take the documents, and give them back as they are.
    expect(found['atif.jsonl']).toEqual(lines(out('atif.jsonl')))
  })

  it('what the environment said between two turns is in the row, and is not trained', () => {
    const turns = [model({ tail: [1, 2], ids: [3, 4] }), model({ from: 0, tail: [5, 6, 7], ids: [8] })]
    const samples = tokenSamples(made(placed(...turns)), () => undefined) as readonly TokenSample[]
    expect(samples).toHaveLength(1)
    const row = (format: keyof typeof TOKEN_COLUMNS) =>
      Object.fromEntries(TOKEN_COLUMNS[format].map(({ name, value }) => [name, value(samples[0]!, 'r')]))
    const [prompt, ids, mask] = [
      [1, 2],
      [3, 4, 5, 6, 7, 8],
      [1, 1, 0, 0, 0, 1],
    ]
    const logProbs = mask.map((one) => -0.5 * one + 0)
    expect(row('verl')).toMatchObject({
      ...{ prompt_ids: prompt, response_ids: ids, response_mask: mask, response_logprobs: logProbs },
    })
    expect(row('trl')).toMatchObject({ prompt_ids: prompt, completion_ids: ids, env_mask: mask, logprobs: logProbs })
    expect(row('prime-rl')).toMatchObject({
      ...{ token_ids: [...prompt, ...ids], mask: [0, 0, ...mask].map(Boolean), logprobs: [0, 0, ...logProbs] },
    })
  })

  it('sft has the messages as they went over the wire', async () => {
    const { run, trajectories } = await someRun([sampled.task('one', { id: 'one' })])
    const { stdout, stderr } = await run('--format', 'sft')
    expect(stderr).toBe('')
    const [line] = linesOf(stdout)
    const last = trajectories[0]!.steps.findLast((step) => step.kind === 'model')!
    const sent = JSON.parse(wireRequest(trajectories[0]!, last)!)
    expect(line.tools).toEqual(sent.tools)
    expect(line.messages.slice(0, -1)).toEqual(sent.messages)
    expect(line.messages.at(-1)).toEqual({ role: 'assistant', content: 'done after 2 calls' })
  })

  it('ATIF has the conversation, tokens, tools and rewards of every kind of agent, by the rules', async () => {
    const tasks = [
      sampled.task('one', { id: 'one' }),
      boss.task('two', { id: 'two/2' }),
      porter.task(null, { id: 'three' }),
    ]
    const { run, runId, out, trajectories } = await someRun(tasks, { grade: alternating })
    const { stderr } = await run('--format', 'atif', '--out', out('atif'))
    expect(stderr).toMatch(/^3 trajectories of run r\d+: /)
    expect(readdirSync(out('atif')).sort()).toEqual(['one.json', 'three.json', 'two%2F2.json'])
    const [one, two, three] = ['one', 'two%2F2', 'three'].map((name) => {
      const document = JSON.parse(readFileSync(join(out('atif'), `${name}.json`), 'utf8'))
      expect(brokenRules(document)).toEqual([])
      return document
    })
    const calls = trajectories[0]!.steps.filter((step) => step.kind === 'model')
    const agents = one.steps.filter(({ source }: { source: string }) => source === 'agent')
    expect(one.steps.map(({ source }: { source: string }) => source)).toEqual([
      'system',
      'user',
      'agent',
      'agent',
      'agent',
    ])
    expect(one.steps[0].message).toBe('Add “carefully”.')
    expect(one.agent).toMatchObject({
      name: 'sampled',
      model_name: 'tools:2',
      tool_definitions: [{ type: 'function' }],
    })
    expect(one).toMatchObject({
      session_id: runId,
      trajectory_id: 'one',
      extra: { reward: trajectories[0]!.grade!.reward },
    })
    for (const [place, { tokens, usage, reply }] of calls.entries()) {
      const { metrics, message, observation, tool_calls } = agents[place]
      expect(metrics).toMatchObject({
        ...{
          completion_token_ids: [...tokens!.completion],
          logprobs: [...tokens!.logProbs!],
          cost_usd: usage!.costUsd,
        },
        ...{ prompt_tokens: usage!.inputTokens, extra: { temperature: 0.7 } },
      })
      expect(metrics.prompt_token_ids).toHaveLength(usage!.inputTokens!)
      expect(message).toBe(reply.content ?? '')
      const [call] = reply.calls ?? []
      if (call) {
        expect(tool_calls).toEqual([{ tool_call_id: call.id, function_name: 'add', arguments: JSON.parse(call.raw) }])
        const { a, b } = JSON.parse(call.raw)
        expect(observation.results).toEqual([{ source_call_id: call.id, content: String(a + b) }])
      }
    }
    // Its note, its second conversation and its sub-task are there too.
    expect(two.steps.find(({ extra }: { extra?: object }) => extra && 'action' in extra)).toMatchObject({
      ...{ message: 'thinking', llm_call_count: 0, extra: { reward: 0.25, action: { go: 1 } } },
      observation: { results: [{ content: '{"seen":[1,2]}' }] },
    })
    const inside = two.subagent_trajectories as { agent: { name: string }; extra: { manyworlds: { why: string } } }[]
    expect(inside.map(({ agent, extra }) => [agent.name, extra.manyworlds.why]).sort()).toEqual([
      ['boss', 'another conversation'],
      ['sampled', 'subtask'],
    ])
    expect(three.steps.map(({ source, message }: Record<string, string>) => [source, message])).toEqual([
      ['user', '{"door":"shut"}'],
      ['agent', 'push'],
      ['agent', 'push'],
    ])
    expect(three.steps[1].observation.results).toEqual([{ content: '{"door":"shut"}' }])
  })

  it('says what it leaves out, and why', async () => {
    const secret = 'sk-very-secret-0123456789'
    const model = (name: string, more: object = {}) => ({ baseURL: server.baseURL, model: name, ...more })
    const models = {
      m: model('tools:1', { tokens: 'processed' }),
      raw: model('tools:1', { tokens: true }),
      plain: model('text+openai'),
    }
    const tasks = [
      sampled.task('good', { id: 'good' }),
      asker.task({ model: 'plain' }, { id: 'no ids' }),
      asker.task({ model: 'm', body: { temperature: 1, logprobs: false } }, { id: 'no log-probabilities' }),
      asker.task({ model: 'm' }, { id: 'no temperature' }),
      asker.task({ model: 'm', body: { temperature: 0 } }, { id: 'temperature 0' }),
      asker.task({ model: 'm', body: { temperature: 1, top_p: 0.9 } }, { id: 'truncated' }),
      asker.task({ model: 'm', body: { temperature: 1, presence_penalty: 1 } }, { id: 'penalized' }),
      asker.task({ model: 'm', body: { temperature: 1, response_format: { type: 'json_object' } } }, { id: 'schema' }),
      asker.task({ model: 'raw', body: { temperature: 0.5 } }, { id: 'raw' }),
      porter.task(null, { id: 'no model' }),
      leaky.task({ where: 'message', secret }, { id: 'secret' }),
      leaky.task({ where: 'error', secret }, { id: 'failed' }),
    ]
    const { run, trajectories } = await someRun(tasks, { models, redact: [secret] })
    const { stdout, stderr } = await run('--format', 'trl')
    expect(linesOf(stdout).map(({ trajectory_id: id }) => id)).toEqual(['good', 'good'])
    expect(trajectories).toHaveLength(12)
    expect(stderr).toMatch(/^11 trajectories left out: /)
    for (const reason of [
      'has no token ids',
      'has no log-probabilities',
      'has no model calls',
      'contained secrets',
      'failed or',
      'was sampled at temperature 0',
      'was sampled with top_p, top_k or min_p',
      'was sampled with penalties',
      'was decoded under a grammar or schema',
      'has log-probabilities without temperature',
    ])
      expect(stderr).toContain(`1 ${reason}`)
    expect(stderr).toContain('1 was sampled at an unknown temperature')
    expect(stdout + stderr).not.toContain(secret)
  })

  it('exports the train split unless told otherwise, and filters by success and reward', async () => {
    const tasks = ['train', 'validation', 'test', undefined].map((split, place) =>
      sampled.task(`${split}`, { id: `t${place}`, ...(split && { metadata: { split } }) }),
    )
    const { run } = await someRun(tasks, { grade: byId })
    const ids = async (...words: string[]) => {
      const { stdout, stderr } = await run('--format', 'atif', ...words)
      return [
        linesOf(stdout)
          .map(({ trajectory_id: id }) => id)
          .join(' '),
        stderr,
      ]
    }
    expect(await ids()).toEqual(['t0', '3 trajectories left out: 3 have another split\n'])
    expect(await ids('--split', 'test')).toEqual(['t2', '3 trajectories left out: 3 have another split\n'])
    expect((await ids('--split', 'all'))[0]!.split(' ').sort()).toEqual(['t0', 't1', 't2', 't3'])
    const solved = '2 trajectories left out: 2 were not solved (--only-success)\n'
    const [good, left] = await ids('--split', 'all', '--only-success')
    expect([good!.split(' ').sort(), left]).toEqual([['t2', 't3'], solved])
    expect((await ids('--split', 'all', '--min-reward', '3'))[0]).toBe('t3')
  })

  it('refuses options and files that do not fit the format', async () => {
    const { run, out } = await someRun([porter.task(null, { id: 'a' })])
    const refused = async (...words: string[]) => {
      const { code, stderr } = await run(...words)
      expect(code).toBe(2)
      return stderr
    }
    expect(await refused('--format', 'verl', '--out', out('a.csv'))).toContain('must end with .parquet or .jsonl')
    expect(await refused('--format', 'sft', '--out', out('a.parquet'))).toContain('must end with .jsonl')
    expect(await refused('--format', 'sft', '--what', 'steps')).toContain('--what is for csv, jsonl, parquet')
    expect(await refused('--format', 'csv', '--split', 'all')).toContain(
      '--split is for atif, verl, trl, sft, preference, prime-rl',
    )
  })

  it('replaces a folder of documents with --force only, and never one with other files', async () => {
    const { run, out } = await someRun([porter.task(null, { id: 'a' })])
    const again = (...words: string[]) => run('--format', 'atif', '--out', out('folder/'), ...words)
    expect((await again()).code).toBe(0)
    expect(await again()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not empty; use --force to replace it'),
    })
    expect((await again('--force')).code).toBe(0)
    writeFileSync(out('folder/mine.txt'), '')
    expect(await again('--force')).toMatchObject({ code: 1, stderr: expect.stringContaining('mine.txt') })
    expect(readdirSync(out('folder')).sort()).toEqual(['a.json', 'mine.txt'])
  })
})
