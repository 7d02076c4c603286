import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LossSettings } from '../../dist/train/index.js'
import { TinkerCalls } from '../../dist/train/tinker/calls.js'
import { datumOf, mapLoss } from '../../dist/train/tinker/loss-mapping.js'
import { TinkerModel } from '../../dist/train/tinker/model.js'
import { Sampling } from '../../dist/train/tinker/sampler.js'
import { TinkerSession } from '../../dist/train/tinker/session.js'
import { checkedTinker } from '../../dist/train/tinker/settings.js'
import { TINKER } from '../python/environments.ts'
import { PYTHON_SET_UP_MS, pythonOf, runPython, whyNoPython } from '../python/locked.ts'
import { untrained } from '../train/tinker-model.ts'
import { tokenRows } from '../train/tinker-rows.ts'
import { KEY, TinkerServer } from '../train/tinker-server.ts'
import { BASE } from '../train/tinker-service.ts'

/**
 * Tinker's own SDK makes the same calls of the scripted server as we do: the server answers in the form that the SDK reads, and what both
 * send is the same.
 */

const SDK_MS = 120_000
const LOSSES: readonly LossSettings[] = [{ name: 'is' }, { name: 'clip' }, { name: 'cispo' }, { name: 'reinforce' }]
const ADAM = { learning_rate: 0.1, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0, grad_clip_norm: 1 }
const PROMPT = [1, 2, 3, 0]
const RANK = 4

const rows = tokenRows(5, untrained().delta)
const passes = LOSSES.map((loss, i) => {
  const mapping = mapLoss(loss)
  if (mapping.how !== 'direct') throw new Error('a loss that takes two passes')
  return { call: mapping.call, data: rows.map((row) => datumOf(row, mapping.rule, mapping.call)), forwardOnly: i === 0 }
})

interface Heard {
  readonly passes: { logProbs: number[][]; metrics: Record<string, number> }[]
  readonly again: { logProbs: number[][] }
  readonly optimStep: Record<string, number>
  readonly published: string
  readonly state: string
  readonly samples: { ids: number[]; logProbs: number[]; stop: string }[]
  readonly promptLogProbs: (number | null)[]
  readonly unknown: string
}

let why: string | undefined
beforeAll(async () => {
  process.env.TINKER_TEST_KEY = KEY
  why = await whyNoPython(TINKER)
}, PYTHON_SET_UP_MS)
afterAll(() => {
  delete process.env.TINKER_TEST_KEY
})

async function bySdk(server: TinkerServer): Promise<Heard> {
  const input = {
    ...{ baseURL: server.baseURL, key: KEY, base: BASE, rank: RANK, prompt: PROMPT, adam: ADAM },
    passes: passes.map(({ call: { lossFn, config = {} }, data, forwardOnly }) => ({
      ...{ lossFn, config, forwardOnly },
      data: data.map(({ tokens, inputs }) => ({
        tokens: Array.from(tokens),
        inputs: Object.fromEntries(Object.entries(inputs).map(([key, values]) => [key, Array.from(values)])),
      })),
    })),
  }
  const script = new URL('python/tinker_sdk.py', import.meta.url)
  return (await runPython(await pythonOf(TINKER), script, { input, timeoutMs: SDK_MS })) as Heard
}

async function byOurs(server: TinkerServer): Promise<Heard> {
  const options = { base: BASE, rank: RANK, apiKeyEnv: 'TINKER_TEST_KEY', baseURL: server.baseURL }
  const settings = checkedTinker(options)
  const calls = new TinkerCalls(settings)
  const session = await TinkerSession.open(calls, settings.name)
  const model = await TinkerModel.create(session, settings)
  const passed = async (of: TinkerModel, { call, data, forwardOnly }: (typeof passes)[number], only = forwardOnly) => {
    const [output] = await of.forwardBackward(data, call, only)
    return { logProbs: output!.outputs.logprobs!.map((values) => Array.from(values)), metrics: { ...output!.metrics } }
  }
  const heard = []
  for (const one of passes) heard.push(await passed(model, one))
  const optimStep = (await model.optimStep(ADAM)) as Record<string, number>
  const published = await model.save('save_weights_for_sampler', 'manyworlds-000001')
  const state = await model.save('save_weights', 'manyworlds-000001')
  const again = await passed(await TinkerModel.from(session, settings, state), passes[0]!, true)
  const sampling = await Sampling.open(session, { model_path: published })
  const samples = await sampling.sample({ prompt: PROMPT, maxTokens: 4, count: 2, seed: 3 })
  const scored = await sampling.logProbs(PROMPT)
  const unknown = await TinkerModel.create(session, { ...settings, base: 'toy/unknown' }).then(String, String)
  calls.close()
  return {
    ...{ passes: heard, again, optimStep, published, state, unknown },
    samples: samples.map(({ ids, logProbs, stop }) => ({ ids: [...ids], logProbs: [...logProbs], stop })),
    promptLogProbs: Array.from(scored, (value) => (Number.isNaN(value) ? null : value)),
  }
}

/** What only one of the two says, and what says nothing: that something is as it is without it. */
const ASIDE = ['tags', 'user_metadata', 'record_stability_info', 'seed']
const NOTHING = ['topk_prompt_logprobs', 'topk_sample_logprobs', 'prompt_alt_tokens_k']
const UNASKED = ['retrieve_future', 'client/dynamic_config', 'session_heartbeat', 'weights_info']

/** Calls in their order, in one form. The SDK has several clients, each with a configuration and a token of its own. */
function sent({ calls }: TinkerServer): object[] {
  const told = calls.filter(({ path }) => !UNASKED.includes(path))
  const isFirst = (path: string, at: number) => told.findIndex((call) => call.path === path) === at
  return told
    .filter(({ path }, at) => !['client/config', 'auth/token'].includes(path) || isFirst(path, at))
    .map(({ path, body, headers }) => ({ path, type: headers['content-type'], body: plain(body) }))
}

function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return Array.isArray(value) ? value.map(plain) : value
  const kept = Object.entries(value).filter(([key, one]) => {
    if (NOTHING.includes(key)) expect(one).toBe(0)
    return !ASIDE.includes(key) && !NOTHING.includes(key)
  })
  return Object.fromEntries(kept.sort().map(([key, one]) => [key, plain(one)]))
}

describe("Tinker's own SDK", () => {
  for (const byLoad of [false, true])
    it(`and we say and hear the same${byLoad ? ', where loading makes the model, with tokens for the key' : ''}`, {
      timeout: SDK_MS,
    }, async (ctx) => {
      if (why !== undefined) return ctx.skip(why)
      const tokens = byLoad ? { tokenSeconds: 600 } : {}
      const options = { pendingPolls: 2, flags: { create_model_via_load_weights: byLoad }, ...tokens }
      await using theirs = await TinkerServer.start(options)
      await using our = await TinkerServer.start(options)
      const [sdk, ours] = [await bySdk(theirs), await byOurs(our)]
      expect(sent(our)).toEqual(sent(theirs))
      expect(our.count('forward_backward')).toBe(LOSSES.length + 1)
      const { unknown: said, ...results } = sdk
      expect(ours).toMatchObject(results)
      for (const text of [said, ours.unknown]) expect(text).toContain("'toy/unknown' is not supported")
    })
})
