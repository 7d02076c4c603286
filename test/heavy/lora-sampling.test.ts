import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loraCore } from '../../dist/train/lora/lora-core.js'
import { type Sampler, startSampler } from '../../dist/train/lora/serve/start-sampler.js'
import type { LoraOptions } from '../../dist/train/lora/settings.js'
import { PYTHON_SET_UP_MS } from '../python/locked.ts'
import { type Answered, bitsOf, learnSomething, post, talkingTiny, whyNoLora } from './lora/sampler.ts'
import { closeSidecars, numbers, takeSidecar, tokenRow } from './lora/tiny.ts'

const missing = await whyNoLora()
const TRAINER_GAP = 1e-4

describe.skipIf(missing)('sampling through the sidecar', () => {
  let options: LoraOptions
  let sampler: Sampler
  let versions: readonly Uint8Array[]

  beforeAll(async () => {
    options = await talkingTiny()
    const core = loraCore(options, { start: takeSidecar })
    versions = [await learnSomething(core, 1), await learnSomething(core, 2)]
    sampler = await startSampler(options)
    await sampler.load('v1', versions[0]!)
    await sampler.load('v2', versions[1]!)
    await sampler.load('start', null)
  }, PYTHON_SET_UP_MS)
  afterAll(async () => {
    await sampler?.close()
    await closeSidecars()
  })

  const chat = (body: object, signal?: AbortSignal) => post(sampler, '/chat/completions', body, signal)
  const says = (content: string) => [{ role: 'user', content }]

  /** Prompts of many lengths, some twice, with all parameters there are. */
  function requests(count: number): object[] {
    const random = numbers(11)
    const draw = (below: number) => Math.floor(random() * below)
    return Array.from({ length: count }, (_, n) => ({
      ...{ model: ['v1', 'v1', 'v2', 'base'][draw(4)], messages: says('x'.repeat(draw(4) * 37 + draw(3))) },
      ...{ max_tokens: 1 + draw(40), temperature: [1, 1, 0.7, 0][draw(4)], seed: n },
      ...(draw(4) === 0 && { top_p: 0.9 }),
      ...(draw(4) === 0 && { top_k: 20 }),
      ...(draw(4) === 0 && { min_p: 0.05 }),
    }))
  }

  it('gives a request the same tokens and log-probabilities, whatever is asked for beside it', async () => {
    expect(sampler.exact).toBe(true)
    const all = requests(48)
    const alone: unknown[] = []
    for (const body of all) alone.push(bitsOf(await chat(body)))
    for (const stride of [1, 5, 7]) {
      const order = all.map((_, n) => (n * stride + 3) % all.length).slice(0, all.length - stride)
      const together = await Promise.all(order.map((n) => chat(all[n]!)))
      expect(together.map(bitsOf)).toEqual(order.map((n) => alone[n]))
    }
  })

  it('samples from the version that was asked for, as the trainer computes it', async () => {
    const body = { messages: says('Who?'), max_tokens: 20, seed: 4, temperature: 0.8 }
    const [first, second, base, start] = await Promise.all(
      ['v1', 'v2', 'base', 'start'].map((model) => chat({ ...body, model })),
    )
    expect(first!.reply.model).toBe('v1')
    expect(bitsOf(first!)).not.toEqual(bitsOf(second!))
    expect(bitsOf(first!)).not.toEqual(bitsOf(base!))
    expect(bitsOf(start!)).toEqual(bitsOf(base!))
    for (const [version, answered] of [first!, second!].entries()) {
      const core = loraCore(options, { start: takeSidecar, from: versions[version]! })
      const { prompt, tokens, logProbs } = bitsOf(answered)
      const row = { prompt, completion: tokens, mask: tokens.map(() => 1), advantage: 0 }
      const found = await core.forward([tokenRow(row, logProbs, 1, { temperature: 0.8 })], 'current')
      for (const [n, logProb] of logProbs.entries())
        expect(Math.abs(found.logProbs[0]![prompt.length + n]! - logProb)).toBeLessThan(TRAINER_GAP)
      await core[Symbol.asyncDispose]()
    }
  })

  it('carries the tokens of a conversation on: each prompt begins with the one before and its completion', async () => {
    const messages: object[] = says('One')
    let prefix: { messages: number; token_ids: readonly number[] } | undefined
    for (let turn = 0; turn < 4; turn++) {
      // The second is cut by its limit, the others may be too; none is text that could be read back as the same tokens.
      const answered = await chat({
        ...{ model: 'v1', messages, max_tokens: turn === 1 ? 3 : 30, seed: turn },
        ...(prefix && { prompt_prefix: prefix }),
      })
      const { prompt, tokens, finish } = bitsOf(answered)
      if (prefix) {
        expect(answered.reply.prompt_prefix_used).toBe(true)
        expect(prompt.slice(0, prefix.token_ids.length)).toEqual(prefix.token_ids)
        const tail = Buffer.from(prompt.slice(prefix.token_ids.length).filter((id) => id > 2)).length
        expect(tail).toBe(`user\nMore ${turn}assistant\n`.length)
        const ends = prompt.slice(prefix.token_ids.length - 1).filter((id) => id === 2)
        // One end for the reply, of its own or of ours, and one for what the user said.
        expect(ends).toHaveLength(2)
      }
      expect(finish).toMatch(/stop|length/)
      messages.push(answered.reply.choices[0].message!, { role: 'user', content: `More ${turn + 1}` })
      prefix = { messages: messages.length - 1, token_ids: [...prompt, ...tokens] }
    }
  })

  it('goes on with a last message of the assistant, and shows tools to the template', async () => {
    const messages = [...says('1 + 1'), { role: 'assistant', content: '1 + 1 =' }]
    const body = { model: 'base', max_tokens: 2, seed: 1 }
    const [open, closed, tools] = await Promise.all([
      chat({ ...body, messages, continue_final_message: true }),
      chat({ ...body, messages }),
      chat({ ...body, messages, tools: [{ type: 'function', function: { name: 'add', parameters: {} } }] }),
    ])
    const prefill = bitsOf(await post(sampler, '/completions', { ...body, prompt: '1 + 1 =' })).prompt
    expect(bitsOf(open!).prompt.slice(-prefill.length)).toEqual(prefill)
    expect(bitsOf(closed!).prompt.length).toBeGreaterThan(bitsOf(open!).prompt.length)
    expect(bitsOf(tools!).prompt.length).toBeGreaterThan(bitsOf(closed!).prompt.length + 20)
  })

  it('completes texts and ids, ends at a stop text, and has a seed of its own for each body', async () => {
    const complete = (body: object) => post(sampler, '/completions', { model: 'v2', max_tokens: 60, ...body })
    const [byText, again, other] = await Promise.all([
      complete({ prompt: 'abc' }),
      complete({ prompt: 'abc' }),
      complete({ prompt: 'abc', user: 'somebody else' }),
    ])
    expect(bitsOf(byText!)).toEqual(bitsOf(again!))
    expect(bitsOf(byText!).tokens).not.toEqual(bitsOf(other!).tokens)
    const { prompt, tokens } = bitsOf(byText!)
    expect(prompt).toHaveLength(3)
    const byIds = await complete({ prompt, seed: 5 })
    expect(bitsOf(byIds)).toEqual(bitsOf(await complete({ prompt: 'abc', seed: 5 })))
    const text = byIds.reply.choices[0].text!
    const stop = [...text].find((sign) => /[a-zA-Z0-9]/.test(sign))!
    const stopped = await complete({ prompt, seed: 5, stop })
    expect(stopped.reply.choices[0].text).toBe(text.slice(0, text.indexOf(stop)))
    expect(bitsOf(stopped).finish).toBe('stop')
    expect(bitsOf(byIds).tokens.slice(0, bitsOf(stopped).tokens.length)).toEqual(bitsOf(stopped).tokens)
    expect(tokens.length).toBeGreaterThan(0)
  })

  it('refuses what it cannot do, in words', async () => {
    const ask = { model: 'v1', messages: says('Hi') }
    const cases: readonly [Promise<Answered>, number, RegExp][] = [
      [post({ ...sampler, baseURL: sampler.baseURL, apiKey: 'wrong' }, '/chat/completions', ask), 401, /token/],
      [chat({ ...ask, model: 'v9' }), 404, /model "v9" not found; loaded: base, v1, v2, start/],
      [chat({ ...ask, stream: true }), 400, /stream/],
      [chat({ ...ask, messages: says('x'.repeat(2000)) }), 400, /tokens, but the context of the model has only 1024/],
      [chat({ ...ask, messages: [{ role: 'user', content: 5 }] }), 400, /message 0 has content that is not text/],
      [
        post(sampler, '/completions', { model: 'v1', prompt: [1, 999] }),
        400,
        /token id outside of the vocabulary of 259/,
      ],
      [post(sampler, '/embeddings', ask), 404, /\/v1\/embeddings not found/],
    ]
    for (const [answered, status, words] of cases) {
      const { status: got, error } = await answered
      expect([got, error]).toEqual([status, expect.stringMatching(words)])
      expect(error).not.toMatch(/Traceback|\n/)
    }
    await expect(sampler.load('v3', Buffer.from('nothing'))).rejects.toMatchObject({ code: 'POLICY_INVALID' })
    await expect(sampler.load('base', versions[0]!)).rejects.toMatchObject({ code: 'POLICY_INVALID' })
  })

  it('drops requests whose client went away, and those of a model that is unloaded', async () => {
    const long = { messages: says('Long'), max_tokens: 900, temperature: 2 }
    const client = new AbortController()
    const gone = Array.from({ length: 4 }, (_, seed) => chat({ ...long, model: 'v1', seed }, client.signal))
    await sampler.load('brief', versions[0]!)
    const unloaded = chat({ ...long, model: 'brief', seed: 1 })
    setTimeout(() => client.abort(), 300)
    expect((await Promise.allSettled(gone)).map(({ status }) => status)).toContain('rejected')
    await sampler.unload('brief')
    const { status, error } = await unloaded
    if (status !== 200) expect([status, error]).toEqual([503, 'the model brief was unloaded'])
    expect((await chat({ ...long, model: 'v1', max_tokens: 2 })).status).toBe(200)
    expect((await chat({ ...long, model: 'brief' })).status).toBe(404)
  })

  it('comes back from kill -9 with its versions: the same request gets the same bits', async () => {
    const body = { model: 'v2', messages: says('Again'), max_tokens: 20, seed: 9 }
    const before = bitsOf(await chat(body))
    const pid = sampler.pid!
    const lost = [1, 2, 3].map((seed) => chat({ ...body, max_tokens: 900, temperature: 2, seed }))
    setTimeout(() => process.kill(pid, 'SIGKILL'), 200)
    const answers = await Promise.all(lost)
    expect(answers.map(({ status }) => status)).toContain(503)
    for (const { status, error } of answers) if (status !== 200) expect(error).toMatch(/SIGKILL/)
    const after = await Promise.all([chat(body), chat({ ...body, model: 'v1' })])
    expect(sampler.pid).not.toBe(pid)
    expect(bitsOf(after[0]!)).toEqual(before)
    expect(bitsOf(after[1]!)).not.toEqual(before)
  })
})
