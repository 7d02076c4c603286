import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type SmolLm, startSmolLm, whyNoSmolLm } from './smollm.ts'

/** What a real server says over HTTP, before any code of ours reads it: the tests of models rely on it. */

const skip = (await whyNoSmolLm()) !== undefined
const END_OF_TURN = 2

interface TokenLogprob {
  readonly id: number
  readonly token: string
  readonly logprob: number
}

describe.skipIf(skip)('SmolLM2', () => {
  let server: SmolLm
  beforeAll(async () => {
    server = await startSmolLm()
  })
  afterAll(() => server?.close())

  async function post<T>(path: string, body: object): Promise<T> {
    const init = { method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(50_000) }
    const response = await fetch(`${server.url}${path}`, init)
    const text = await response.text()
    if (!response.ok) throw new Error(`HTTP ${response.status}: ${text}`)
    return JSON.parse(text) as T
  }

  const tokenize = async (content: string) =>
    (await post<{ tokens: number[] }>('/tokenize', { content, add_special: false, parse_special: true })).tokens

  interface Chat {
    readonly model: string
    readonly usage: { completion_tokens: number; prompt_tokens: number }
    readonly choices: [
      { finish_reason: string; message: { content: string }; logprobs: { content: readonly TokenLogprob[] } },
    ]
  }

  test('a chat answer has the id and the log-probability of each token, the end of the turn included', async () => {
    const messages = [{ role: 'user', content: 'What is 2+2? Reply with only the number.' }]
    const answer = await post<Chat>('/v1/chat/completions', {
      model: 'small',
      messages,
      max_tokens: 24,
      temperature: 0,
      logprobs: true,
      top_logprobs: 1,
    })
    const [{ finish_reason, message, logprobs }] = answer.choices
    expect(answer.model).toBe('smollm2-135m')
    expect(finish_reason).toBe('stop')
    expect(logprobs.content.length).toBe(answer.usage.completion_tokens)
    expect(logprobs.content.at(-1)!.id).toBe(END_OF_TURN)
    expect(logprobs.content.map(({ token }) => token).join('')).toBe(message.content)
    for (const { logprob } of logprobs.content) expect(logprob).toBeLessThanOrEqual(0)

    // The prompt's ids are not in the answer: the template's text has them.
    const { prompt } = await post<{ prompt: string }>('/apply-template', { messages })
    expect((await tokenize(prompt)).length).toBe(answer.usage.prompt_tokens)
  })

  interface Completion {
    readonly choices: [{ text: string; finish_reason: string; logprobs: { content: readonly TokenLogprob[] } }]
    readonly timings: { cache_n: number; prompt_n: number }
  }

  /** Four turns; turn 1 is cut by its limit. What each prompt is expected to find in the cache, and what it found. */
  async function converse(id_slot: number): Promise<{ expected: number; cached: number; reason: string }[]> {
    const questions = ['What is 2+2?', 'And 3+3?', 'Name a color.', 'Thanks. Bye.'].map(
      (text) => `${text} Topic ${id_slot}.`,
    )
    const messages = [{ role: 'user', content: questions[0] }]
    let prompt = await tokenize((await post<{ prompt: string }>('/apply-template', { messages })).prompt)
    const turns: { expected: number; cached: number; reason: string }[] = []
    let expected = 0
    for (const [turn] of questions.entries()) {
      const max_tokens = turn === 1 ? 3 : 12
      const body = { prompt, max_tokens, temperature: 0, logprobs: 1, id_slot }
      const answer = await post<Completion>('/v1/completions', body)
      const [choice] = answer.choices
      const ids = choice.logprobs.content.map(({ id }) => id)
      turns.push({ expected, cached: answer.timings.cache_n, reason: choice.finish_reason })
      expect(answer.timings.cache_n + answer.timings.prompt_n).toBe(prompt.length)
      // The last token was drawn but not yet read by the model.
      expected = prompt.length + ids.length - 1
      const end = ids.at(-1) === END_OF_TURN ? [] : [END_OF_TURN]
      const next = `\n<|im_start|>user\n${questions[turn + 1]}<|im_end|>\n<|im_start|>assistant\n`
      prompt = [...prompt, ...ids, ...end, ...(await tokenize(next))]
    }
    return turns
  }

  test('four conversations by token ids at once: every prompt finds the one before it in the cache', async () => {
    // Each says which slot is its own: else another conversation may begin on it, and push it out.
    const conversations = await Promise.all([0, 1, 2, 3].map(converse))
    for (const [, ...later] of conversations)
      for (const { expected, cached } of later) expect(cached, JSON.stringify(later)).toBe(expected)
    for (const turns of conversations) expect(turns[1]!.reason).toBe('length')
  })

  test('a text that ends an answer counts as a token, but has no log-probability', async () => {
    const messages = [{ role: 'user', content: 'Count from 1 to 10, separated by commas.' }]
    const { choices, usage } = await post<Chat>('/v1/chat/completions', {
      messages,
      max_tokens: 24,
      temperature: 0,
      logprobs: true,
      top_logprobs: 1,
      stop: [','],
    })
    expect(choices[0].finish_reason).toBe('stop')
    expect(choices[0].logprobs.content.map(({ token }) => token).join('')).toBe(choices[0].message.content)
    expect(usage.completion_tokens).toBe(choices[0].logprobs.content.length + 1)
  })

  test('a prompt that is too long is refused, with an error type of llama.cpp', async () => {
    const body = { prompt: Array.from({ length: 3000 }, () => 57), max_tokens: 1 }
    await expect(post('/v1/completions', body)).rejects.toThrow(/HTTP 400: .*"exceed_context_size_error"/)
  })

  test('an answer by a JSON schema has that form', async () => {
    const schema = {
      type: 'object',
      properties: { city: { type: 'string', maxLength: 20 }, sunny: { type: 'boolean' } },
      required: ['city', 'sunny'],
      additionalProperties: false,
    }
    const { choices } = await post<Chat>('/v1/chat/completions', {
      messages: [{ role: 'user', content: 'What is the capital of France?' }],
      max_tokens: 80,
      temperature: 0,
      logprobs: true,
      top_logprobs: 1,
      response_format: { type: 'json_schema', json_schema: { name: 'city', strict: true, schema } },
    })
    const { content } = choices[0].message
    expect(JSON.parse(content)).toEqual({ city: expect.any(String), sunny: expect.any(Boolean) })
    // The model may write a code fence, which the server takes off: tokens are more than the text.
    expect(choices[0].logprobs.content.map(({ token }) => token).join('')).toContain(content)
  })
})
