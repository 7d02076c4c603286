import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Runners } from '../../dist/index.js'
import { grpo } from '../../dist/train/index.js'
import { sampled } from '../agents/export-agents.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { startModelServer } from '../models/scripted-server.ts'
import { TRL } from '../python/environments.ts'
import { PYTHON_SET_UP_MS, whyNoPython } from '../python/locked.ts'
import { LOSS_CASES, ourLoss } from './loss-cases.ts'
import { askTrl, type TrlCheck } from './trl.ts'

/** How much two ways to compute the same may differ. TRL's own numbers are float32. */
const CLOSE = 1e-6
const REWARDS = [
  [1, 0, 0, 0],
  [0.2, 0.9, 0.4, 0.9],
]

const folder = mkdtempSync(join(tmpdir(), 'manyworlds-heavy-'))
const at = (name: string) => join(folder, name)
let why: string | undefined
let found: TrlCheck

beforeAll(async () => {
  why = await whyNoPython(TRL)
  if (why !== undefined) return
  await sampledRun()
  await importedRun()
  const exported = async (run: string, format: string, out: string) => {
    const { code, stderr } = await manyworlds(['export', run, '--dir', folder, '--format', format, '--out', at(out)])
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(`of run ${run}`) })
    return at(out)
  }
  const files = {
    sft: await exported('chats', 'sft', 'sft.jsonl'),
    verl: await exported('tokens', 'verl', 'verl.parquet'),
    trl: await exported('tokens', 'trl', 'trl.parquet'),
    preference: await exported('tokens', 'preference', 'pairs.jsonl'),
  }
  found = await askTrl(files, LOSS_CASES)
}, PYTHON_SET_UP_MS)
afterAll(async () => {
  await Runners.shutdown()
  rmSync(folder, { recursive: true, force: true })
})

/** Conversations with calls of tools, as an agent had them with a server. */
async function sampledRun() {
  const server = await startModelServer({ seed: 3 })
  try {
    const models = { m: { baseURL: server.baseURL, model: 'tools:2' } }
    const tasks = ['one', 'two', 'three', 'four'].map((id) => sampled.task(id, { id }))
    await Runners.runTask(tasks, { workerNum: 1, store: folder, runId: 'chats', models })
  } finally {
    await server.close()
  }
}

/** What a rollout sampled, with a tool's answer of other length in the middle. */
const completionOf = (group: number, rollout: number) => ({
  first: [20 + group, 30 + rollout],
  tool: Array.from({ length: 1 + rollout }, (_, place) => 40 + place),
  second: [50 + group, 60 + rollout, 2],
})

/** Two groups of four rollouts, with two turns each: the second goes on with the tokens of the first. */
async function importedRun() {
  const documents = REWARDS.flatMap((rewards, group) =>
    rewards.map((reward, place) => {
      const { first, tool, second } = completionOf(group, place)
      const prompt = [10, 11, 12 + group]
      const metrics = (ids: readonly number[], before: readonly number[]) => ({
        ...{ prompt_token_ids: before, completion_token_ids: ids, logprobs: ids.map((id) => -id / 64) },
        extra: { temperature: 1 },
      })
      const call = { tool_call_id: 'c', function_name: 'add', arguments: {} }
      const id = `g${group}`
      return {
        ...{ schema_version: 'ATIF-v1.7', session_id: 's', trajectory_id: `${id}@${place + 1}` },
        agent: { name: 'clerk', version: '1', model_name: 'm', tool_definitions: [] },
        extra: { reward, manyworlds: { group: { id }, rollout: place + 1 } },
        steps: [
          { step_id: 1, source: 'user', message: 'add' },
          {
            ...{ step_id: 2, source: 'agent', message: '', tool_calls: [call], metrics: metrics(first, prompt) },
            observation: { results: [{ source_call_id: 'c', content: '3' }] },
          },
          {
            ...{ step_id: 3, source: 'agent', message: `3, says ${id}@${place + 1}` },
            metrics: metrics(second, [...prompt, ...first, ...tool]),
          },
        ],
      }
    }),
  )
  writeFileSync(at('in.jsonl'), documents.map((document) => JSON.stringify(document)).join('\n'))
  const { code, stderr } = await manyworlds(['import', at('in.jsonl'), '--dir', folder, '--run-id', 'tokens'])
  expect({ code, stderr }).toMatchObject({ code: 0 })
}

const byText = (one: unknown, other: unknown) => JSON.stringify(one).localeCompare(JSON.stringify(other))
const rollouts = REWARDS.flatMap((rewards, group) => rewards.map((reward, place) => ({ group, place, reward })))

describe('TRL takes exports as they are', () => {
  it('SFTTrainer learns conversations: what the agent said and called, and nothing else', ({ skip }) => {
    if (why !== undefined) skip(why)
    interface Message {
      readonly role: string
      readonly content: string | null
      readonly tool_calls?: readonly { readonly function: { readonly name: string; readonly arguments: string } }[]
    }
    const lines = readFileSync(at('sft.jsonl'), 'utf8').trim().split('\n')
    const conversations = lines.map((line) => (JSON.parse(line) as { messages: readonly Message[] }).messages)
    expect(conversations).toHaveLength(4)
    for (const messages of conversations) {
      const said = messages.filter(({ role }) => role === 'assistant')
      const words = said.map(({ content, tool_calls: calls = [] }) => {
        const called = calls.map(({ function: { name, arguments: args } }) => `<call>${name} ${args}</call>`)
        return `${content ?? ''}${called.join('')}<|im_end|>`
      })
      expect(said).toHaveLength(3)
      const seen = found.sft.seen.find(({ learned }) => learned === words.join(''))
      expect(seen, words.join('')).toBeDefined()
      for (const { content } of messages) expect(seen!.text).toContain(content ?? '')
      expect(seen!.text).toContain('"adds two numbers"')
    }
    expect(found.sft.moved).toBe(true)
    expect(found.sft.losses).toHaveLength(3)
    expect(found.sft.losses[2]).toBeLessThan(found.sft.losses[0]!)
  })

  it('SFTTrainer learns rows of tokens where the mask says so', ({ skip }) => {
    if (why !== undefined) skip(why)
    const sampledTokens = rollouts.map(({ group, place }) => {
      const { first, second } = completionOf(group, place)
      return [...first, ...second]
    })
    expect(found.verl.learned.toSorted(byText)).toEqual(sampledTokens.toSorted(byText))
    expect(found.verl.moved).toBe(true)
    expect(found.verl.losses[2]).toBeLessThan(found.verl.losses[0]!)
  })

  it('DPOTrainer learns the best of each group beside the worst', ({ skip }) => {
    if (why !== undefined) skip(why)
    const { learned, moved, losses } = found.preference
    expect({ moved, steps: losses.length }).toEqual({ moved: true, steps: 3 })
    // The calls of all rollouts are alike: they go with the prompt.
    const [better, worse] = [learned.slice(0, 2), learned.slice(2)].map((texts) =>
      texts.map((text) => text.replace('<|im_end|>', '').trim()).sort(),
    )
    expect(better).toEqual(['3, says g0@1', '3, says g1@2'])
    expect(worse).toEqual(['3, says g0@2', '3, says g1@1'])
    expect(losses[0]).toBeCloseTo(Math.log(2), 4)
    expect(losses[2]).toBeLessThan(losses[0]!)
  })

  it('GRPOTrainer trains three steps with rows as rollouts, and gives them our advantages', ({ skip }) => {
    if (why !== undefined) skip(why)
    const { first, moved, losses, rewards } = found.grpo
    expect({ moved, steps: losses.length }).toEqual({ moved: true, steps: 3 })
    const mean = rollouts.reduce((sum, { reward }) => sum + reward, 0) / rollouts.length
    for (const reward of rewards) expect(reward).toBeCloseTo(mean, 6)
    // TRL adds 1e-4 to the standard deviation.
    const ours = grpo(REWARDS, { eps: 1e-4 }).advantages.flatMap((group) => Array.from(group))
    const expected = rollouts.map(({ group, place }, index) => {
      const { first: said, tool, second } = completionOf(group, place)
      const ids = [...said, ...tool, ...second]
      const mask = [...said.map(() => 1), ...tool.map(() => 0), ...second.map(() => 1)]
      const logProbs = ids.map((id, i) => (mask[i] === 1 ? -id / 64 : 0))
      return { prompt: [10, 11, 12 + group], ids, mask, logProbs, advantage: ours[index]! }
    })
    // TRL shuffles rollouts.
    const given = first.completion_ids!.map((ids, row) => {
      const length = first.completion_mask![row]!.reduce((sum, one) => sum + one, 0)
      const cut = (values: readonly number[]) => values.slice(0, length)
      return {
        ...{ prompt: first.prompt_ids![row], ids: cut(ids), mask: cut(first.tool_mask![row]!) },
        ...{ logProbs: cut(first.sampling_per_token_logps![row]!), advantage: first.advantages[row]! },
      }
    })
    const rows = given.toSorted(byText)
    for (const [index, one] of expected.toSorted(byText).entries()) {
      const { advantage, logProbs, ...same } = one
      expect(rows[index]).toMatchObject(same)
      expect(Math.abs(rows[index]!.advantage - advantage)).toBeLessThan(CLOSE)
      expect(rows[index]!.logProbs).toEqual(logProbs.map(Math.fround))
    }
  })
})

describe('our losses are those of TRL', () => {
  it.for(LOSS_CASES.map((one, index) => ({ ...one, index })))('$name', ({ index, ...one }, { skip }) => {
    if (why !== undefined) skip(why)
    const theirs = found.losses[index]!
    const ours = ourLoss(one)
    const derivatives = ours.byLogProb.flat()
    expect(derivatives.some((value) => Math.abs(value) > 1e-3)).toBe(true)
    if (one.sameValue !== false) expect(Math.abs(ours.loss - theirs.loss)).toBeLessThan(CLOSE)
    if (one.sameDerivative !== false)
      for (const [token, value] of theirs.byLogProb.flat().entries())
        expect(Math.abs(derivatives[token]! - value), `token ${token}`).toBeLessThan(CLOSE)
  })
})
