import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { RunFile } from '../../dist/store/index.js'
import { TRL } from '../python/environments.ts'
import { PYTHON_SET_UP_MS, pythonOf, runPython, whyNoPython } from '../python/locked.ts'
import { serveFile, TOKEN } from '../rollout-server/server.ts'
import { torchEnv } from './trl.ts'

const AGENT = fileURLToPath(new URL('../agents/trl-hook.ts', import.meta.url))
const HOOKS = fileURLToPath(new URL('../../python/hooks', import.meta.url))
/** Half a minute, most of it imports; the rest is for machines that are busy. */
const RUN_MS = 240_000
/** A batch with padding and a cache computes the same in another order. */
const CLOSE = 1e-4

/** What the model sampled in one call. */
interface Sampled {
  readonly prompt: readonly number[]
  readonly ids: readonly number[]
  readonly logprobs: readonly number[]
}

type Rows<Value> = readonly (readonly Value[])[]

interface Returned {
  readonly prompt_ids: Rows<number>
  readonly completion_ids: Rows<number>
  readonly logprobs: Rows<number>
  readonly env_mask: Rows<number>
  readonly reward: readonly (number | null)[]
  readonly failed: readonly (string | null)[]
  readonly run: readonly string[]
  readonly trajectory: readonly string[]
}

interface Found {
  readonly moved: boolean
  readonly losses: readonly number[]
  readonly rewards: readonly number[]
  readonly given: readonly (Readonly<Record<string, Rows<number>>> & {
    readonly advantages: readonly number[]
    readonly difference: number
  })[]
  readonly sampled: readonly (readonly Sampled[])[]
  readonly returned: readonly Returned[]
  /** What came between replies, decoded, of each row. */
  readonly between: readonly string[]
}

/** The turns of a row: what stands before each, what was sampled, with which log-probabilities. */
function turnsOf({ prompt_ids, completion_ids, logprobs, env_mask }: Returned, row: number): Sampled[] {
  const [prompt, ids, values, mask] = [prompt_ids[row]!, completion_ids[row]!, logprobs[row]!, env_mask[row]!]
  const turns: Sampled[] = []
  for (let at = 0; at < ids.length; at++) {
    if (mask[at] !== 1) {
      expect(values[at]).toBe(0)
      continue
    }
    const start = at
    while (mask[at + 1] === 1) at++
    const [own, logs] = [ids.slice(start, at + 1), values.slice(start, at + 1)]
    turns.push({ prompt: [...prompt, ...ids.slice(0, start)], ids: own, logprobs: logs })
  }
  return turns
}

const byText = (one: unknown, other: unknown) => JSON.stringify(one).localeCompare(JSON.stringify(other))

describe('TRL trains on rollouts of a rollout server', () => {
  it('takes three steps, on what its own model sampled', { timeout: PYTHON_SET_UP_MS }, async ({ skip }) => {
    const why = await whyNoPython(TRL)
    if (why !== undefined) skip(why)
    const server = await serveFile(AGENT, '--workers', '1')
    const folder = mkdtempSync(join(tmpdir(), 'manyworlds-trl-hook-'))
    const found = await (async () => {
      try {
        const input = { folder, hooks: HOOKS, url: server.url, token: TOKEN }
        const script = new URL('python/trl_hook.py', import.meta.url)
        const options = { input, env: torchEnv(folder), timeoutMs: RUN_MS }
        return (await runPython(await pythonOf(TRL), script, options)) as Found
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    })()

    expect(found).toMatchObject({ moved: true, losses: { length: 3 } })
    expect(found.returned).toHaveLength(4)
    let multiTurn = 0
    for (const [step, returned] of found.returned.entries()) {
      // Every token that TRL got with a mask of 1 is one that its model sampled, and none is missing.
      const turns = returned.reward.flatMap((_, row) => turnsOf(returned, row))
      multiTurn += turns.length - returned.failed.filter((why) => why === null).length
      expect(turns.toSorted(byText)).toEqual(found.sampled[step]!.toSorted(byText))
    }
    for (const [step, returned] of found.returned.slice(0, 3).entries()) {
      // The second rollout of the first task failed: no reward, and nothing to learn.
      const failed = returned.trajectory.indexOf('q0@2')
      expect(returned.failed.map((why) => why !== null)).toEqual(returned.trajectory.map((id) => id === 'q0@2'))
      expect([returned.reward[failed], returned.env_mask[failed]]).toEqual([null, [0]])
      // TRL's loss got the same: ids, masks and log-probabilities, whatever the order.
      const given = found.given[step]!
      const rows = returned.completion_ids.map((ids, row) => ({
        ...{ prompt: returned.prompt_ids[row], ids, mask: returned.env_mask[row] },
        logProbs: returned.logprobs[row]!.map(Math.fround),
      }))
      const lossRows = given.completion_ids!.map((ids, row) => {
        const [length, start] = [given.completion_mask![row]!, given.prompt_mask![row]!].map((mask) =>
          mask.reduce((sum, one) => sum + one, 0),
        ) as [number, number]
        return {
          ...{ prompt: given.prompt_ids![row]!.slice(-start), ids: ids.slice(0, length) },
          ...{ mask: given.tool_mask![row]!.slice(0, length) },
          logProbs: given.sampling_per_token_logps![row]!.slice(0, length),
        }
      })
      expect(lossRows.toSorted(byText)).toEqual(rows.toSorted(byText))
      expect(given.advantages.filter((advantage) => advantage !== 0).length).toBeGreaterThan(0)
      // The model that is trained says of the tokens what it said when it sampled them.
      expect(given.difference).toBeLessThan(CLOSE)
      using run = RunFile.open(returned.run[0]!, { store: server.store })
      expect(run.overview().total).toBe(8)
    }
    // With a vLLM server it is that server that the agent called; groups of different sizes are two requests.
    expect(found.returned[3]!.trajectory).toEqual(['q1', 'q1@2', 'q0'])
    // Some rollouts called the tool; its results stand between turns, and are not trained.
    expect(multiTurn).toBeGreaterThan(0)
    const called = found.between.filter((text) => text.includes('<|im_start|>tool'))
    expect(called.length).toBeGreaterThan(0)
    for (const text of called) expect(text).toContain('in all<|im_end|>')
  })
})
