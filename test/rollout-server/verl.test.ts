import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { DATASETS_SET_UP_MS, datasetsPython, whyNoDatasets } from '../export/datasets.ts'
import { runPython } from '../python/locked.ts'
import { startRolloutServer, TOKEN } from './server.ts'

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const HOOKS = path('../../python/hooks')
const END = 256

interface Output {
  readonly prompt_ids: readonly number[]
  readonly response_ids: readonly number[]
  readonly response_mask: readonly number[]
  readonly response_logprobs: readonly number[]
}

interface Found {
  readonly outputs: readonly (Output & { readonly error?: string })[]
  readonly calls: readonly {
    readonly request: string
    readonly prompt: readonly number[]
    readonly ids: readonly number[]
    readonly sampling: object
  }[]
  readonly sampling: object
}

const textOf = (ids: readonly number[]) => ids.map((id) => (id === END ? '<end>' : String.fromCharCode(id))).join('')

describe('the agent loop for verl, against a stand-in with the interface of verl 0.9', () => {
  it(
    'gives rollouts as AgentLoopOutput, with the tokens of server_manager.generate',
    async ({ skip }) => {
      if ((await whyNoDatasets()) !== undefined) skip()
      const server = await startRolloutServer()
      const input = { hooks: HOOKS, standin: path('python/verl_standin'), url: server.url, token: TOKEN, length: 2000 }
      const script = new URL('python/verl_check.py', import.meta.url)
      const found = (await runPython(await datasetsPython(), script, { input, timeoutMs: 60_000 })) as Found
      const [one, other, failed, masked] = found.outputs
      expect(one).toMatchObject({ reward_score: 1, num_turns: 4, extra_fields: { manyworlds_trajectory: 't1' } })
      expect(other).toMatchObject({ reward_score: 0 })
      expect(textOf(one!.prompt_ids)).toMatch(/^1 tools\nsystem: Add\.<end>\nuser: what is 1 \+ 2<end>\nassistant: $/)
      expect(textOf(other!.prompt_ids)).toContain('what is 2 + 1')
      for (const output of [one!, other!]) {
        const { prompt_ids: prompt, response_ids: ids, response_mask: mask, response_logprobs: logprobs } = output
        const turns = found.calls.filter((call) => textOf(call.prompt).startsWith(textOf(prompt)))
        expect(turns).toHaveLength(2)
        expect(new Set(turns.map(({ request }) => request)).size).toBe(1)
        const [first, second] = turns
        // The second prompt goes on with the very tokens of the first reply.
        expect(second!.prompt.slice(0, prompt.length + first!.ids.length)).toEqual([...prompt, ...first!.ids])
        expect([...prompt, ...ids]).toEqual([...second!.prompt, ...second!.ids])
        const sampled = ids.filter((_, at) => mask[at] === 1)
        expect(sampled).toEqual([...first!.ids, ...second!.ids])
        expect(logprobs).toEqual(ids.map((id, at) => (mask[at] === 1 ? -id / 512 : 0)))
        const between = textOf(ids.filter((_, at) => mask[at] === 0))
        expect(between).toBe('\ntool: 3<end>\nassistant: ')
        for (const { sampling } of turns)
          expect(sampling).toMatchObject({ temperature: 0.7, top_p: 0.9, logprobs: true })
      }
      expect(found.sampling).toMatchObject({ logprobs: false })
      expect(failed!.error).toMatch(/cannot be trained on: .*no room to generate.*failed_reward/)
      expect(masked).toMatchObject({ reward_score: -1, response_ids: [END], response_mask: [0], num_turns: 0 })
    },
    DATASETS_SET_UP_MS,
  )
})
