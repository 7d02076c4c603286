import { expect, test } from 'vitest'
import { chatAnswer } from '../../dist/train/lora/serve/answer.js'
import { checkedRequest } from '../../dist/train/lora/serve/request.js'
import type { Sampled } from '../../dist/train/lora/serve/sampling.js'

const messages = [{ role: 'user', content: 'Hi' }]
const chat = (body: object) => checkedRequest('chat', JSON.stringify({ model: 'v1', messages, ...body }))
const text = (body: object) => checkedRequest('text', JSON.stringify({ model: 'v1', ...body }))

test('parameters, and what they are when they are left out', () => {
  expect(chat({ seed: 3 }).sampling).toEqual({
    ...{ seed: 3, temperature: 1, topP: 1, topK: 0, minP: 0, maxTokens: 1024, stopTexts: [] },
  })
  const all = { temperature: 0, top_p: 0.5, top_k: 7, min_p: 0.1, max_tokens: 9, max_completion_tokens: 5, stop: 'x' }
  expect(chat({ ...all, seed: -1 }).sampling).toEqual({
    ...{ seed: -1, temperature: 0, topP: 0.5, topK: 7, minP: 0.1, maxTokens: 5, stopTexts: ['x'] },
  })
})

test('a body without a seed has one of its own', () => {
  const seed = (body: object) => chat(body).sampling.seed
  expect(seed({})).toBe(seed({}))
  expect(seed({})).not.toBe(seed({ user: 'me' }))
  expect(Number.isSafeInteger(seed({}))).toBe(true)
})

test.each([
  [{ stream: true }, /stream/],
  [{ n: 2 }, /`n` must be 1/],
  [{ response_format: { type: 'json_object' } }, /response_format/],
  [{ tool_choice: 'required' }, /tool_choice/],
  [{ presence_penalty: 0.5 }, /presence_penalty/],
  [{ temperature: -1 }, /temperature/],
  [{ temperature: 'hot' }, /temperature/],
  [{ top_p: 0 }, /top_p/],
  [{ max_tokens: 0 }, /max_tokens/],
  [{ seed: 1.5 }, /seed/],
  [{ stop: [''] }, /stop/],
  [{ messages: [] }, /messages/],
  [{ messages: [{ content: 'x' }] }, /message 0 has no `role`/],
  [{ messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, /not text/],
  [{ continue_final_message: true }, /continue_final_message/],
  [{ prompt_prefix: { messages: 1, token_ids: [1] } }, /must end with an assistant message/],
  [{ prompt_prefix: { messages: 2, token_ids: [1] } }, /prompt_prefix.messages/],
  [{ model: 7 }, /model/],
])('%j is refused', (body, words) => {
  expect(() => chat(body)).toThrow(words)
})

test('a prompt is a text or ids', () => {
  expect(text({ prompt: 'abc' }).prompt).toEqual({ kind: 'text', text: 'abc' })
  expect(text({ prompt: [1, 2] }).prompt).toEqual({ kind: 'ids', ids: [1, 2] })
  for (const prompt of ['', [], [1.5], [-1], ['a'], undefined]) expect(() => text({ prompt })).toThrow(/`prompt`/)
  expect(() => checkedRequest('text', '{')).toThrow(/not valid JSON/)
  expect(() => checkedRequest('text', '[]')).toThrow(/JSON object/)
})

const sampled: Sampled = {
  ...{ promptIds: Int32Array.of(1, 2), prefixUsed: true, ids: Int32Array.of(5, 6), truncated: false, finish: 'stop' },
  logProbs: Float64Array.of(-0.5, -1),
  text: 'Wait <tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call>',
  pieces: new Map([
    [5, 'Wait'],
    [6, ' …'],
  ]),
}

test('an answer has calls, ids, log-probabilities and usage; ids of calls are the same for the same reply', () => {
  const tools = [{ type: 'function', function: { name: 'look' } }]
  const asked = chat({ tools, logprobs: true, return_token_ids: true })
  const answer = chatAnswer(asked, sampled)
  expect(answer).toMatchObject({
    ...{ object: 'chat.completion', model: 'v1', prompt_token_ids: [1, 2] },
    choices: [
      {
        message: {
          ...{ role: 'assistant', content: 'Wait' },
          tool_calls: [{ id: /^c[0-9a-f]{8}$/, type: 'function', function: { name: 'look', arguments: '{"at":1}' } }],
        },
        finish_reason: 'tool_calls',
        token_ids: [5, 6],
        logprobs: { content: [{ id: 5, logprob: -0.5 }, { id: 6 }], kind: 'processed', truncated: false },
      },
    ],
    usage: { prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 },
  })
  const callOf = (one: object) =>
    (one as { choices: [{ message: { tool_calls: [{ id: string }] } }] }).choices[0].message.tool_calls[0].id
  expect(callOf(chatAnswer(asked, sampled))).toBe(callOf(answer))
})

test('without tools, or with `tool_choice: "none"`, calls are text; what ends an answer is cut off', () => {
  expect(chatAnswer(chat({}), sampled)).toMatchObject({
    choices: [{ message: { content: sampled.text }, logprobs: null }],
  })
  const none = chat({ tools: [{ type: 'function', function: { name: 'look' } }], tool_choice: 'none' })
  expect(chatAnswer(none, sampled)).toMatchObject({ choices: [{ message: { content: sampled.text } }] })
  expect(chatAnswer(chat({ stop: ['>', ' <'] }), sampled)).toMatchObject({
    choices: [{ message: { content: 'Wait' } }],
  })
})
