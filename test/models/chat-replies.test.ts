import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkReply } from '../../dist/models/check-reply.js'
import { completionIn } from '../../dist/models/read-completion.js'
import { replyIn, tokensOf } from '../../dist/models/worker/chat-reply.js'
import { resultOf } from '../../dist/models/worker/language-model.js'
import type { SdkContent, SdkStreamPart } from './prompts.ts'

/**
 * Replies as we read them against how `@ai-sdk/openai-compatible` does, whole and as streams. They differ on purpose:
 * - Tokens that the server does not count are undefined; the provider says 0 for each, if there is any count at all.
 * - A reply with calls ends for calls, whatever the server says (`stop`, nothing), unless it was cut short or filtered.
 * - The id that we make up for a call without one is the same when the reply is read again.
 * - Texts that come in several parts are one text, and thoughts one thought, before the text.
 * - Empty `reasoning_content` beside `reasoning` does not hide it.
 */

const OPTIONS = { prompt: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }] }

const providerOf = (body: string, type: string) =>
  createOpenAICompatible({
    name: 'manyworlds',
    baseURL: 'http://server.invalid/v1',
    fetch: async () => new Response(body, { headers: { 'content-type': type } }),
  })('m')

interface Seen {
  readonly reasoning: string
  readonly text: string
  readonly calls: readonly object[]
  readonly finish: object
  readonly usage: object
}

const MADE_UP = 'made up'

/** `ids`: those that the server has sent. Others were made up, by each in its own way. */
function seen(
  content: readonly SdkContent[],
  finish: { unified: string; raw: string | undefined },
  usage: { inputTokens: object; outputTokens: object },
  ids: ReadonlySet<string>,
): Seen {
  const texts = (kind: string) =>
    content.map((part) => (part.type === kind && 'text' in part ? part.text : '')).join('')
  const calls = content.flatMap((part) =>
    part.type === 'tool-call'
      ? [{ id: ids.has(part.toolCallId) ? part.toolCallId : MADE_UP, name: part.toolName, input: part.input }]
      : [],
  )
  const isCalling = calls.length > 0 && !['length', 'content-filter'].includes(finish.unified)
  const { inputTokens, outputTokens } = usage
  return {
    ...{ reasoning: texts('reasoning'), text: texts('text'), calls },
    finish: { unified: isCalling ? 'tool-calls' : finish.unified, raw: finish.raw },
    usage: { inputTokens: counted(inputTokens), outputTokens: counted(outputTokens) },
  }
}

/** The provider says 0 where nobody counted. */
const counted = (tokens: object) => Object.fromEntries(Object.entries(tokens).map(([name, n]) => [name, n ?? 0]))

function ours(body: string, ids: ReadonlySet<string>): Seen {
  const { content, finishReason, usage } = resultOf(replyIn(body))
  return seen(content as SdkContent[], finishReason, usage, ids)
}

async function theirs(body: string, ids: ReadonlySet<string>): Promise<Seen> {
  const { content, finishReason, usage } = await providerOf(body, 'application/json').doGenerate(OPTIONS)
  return seen(content, finishReason, usage, ids)
}

async function theirStream(body: string, ids: ReadonlySet<string>): Promise<Seen> {
  const { stream } = await providerOf(body, 'text/event-stream').doStream(OPTIONS)
  const content: SdkContent[] = []
  let end: Extract<SdkStreamPart, { type: 'finish' }> | undefined
  for await (const part of stream) {
    if (part.type === 'text-delta') content.push({ type: 'text', text: part.delta })
    else if (part.type === 'reasoning-delta') content.push({ type: 'reasoning', text: part.delta })
    else if (part.type === 'tool-call') content.push(part)
    else if (part.type === 'error') throw part.error
    else if (part.type === 'finish') end = part
  }
  return seen(content, end!.finishReason, end!.usage, ids)
}

interface WireMessage {
  readonly content?: string | readonly object[] | null
  readonly reasoning_content?: string | null
  readonly reasoning?: string | null
  readonly refusal?: string | null
  readonly tool_calls?: readonly WireCall[] | null
}

interface WireCall {
  readonly id?: string | null
  readonly type?: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

interface Reply {
  readonly message: WireMessage
  readonly finish_reason?: string | null
  readonly usage?: object | null
  readonly logprobs?: object | null
}

const whole = ({ message, finish_reason, usage, logprobs }: Reply): string =>
  JSON.stringify({
    ...{ id: 'cmpl-1', object: 'chat.completion', created: 1, model: 'm' },
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason, logprobs }],
    usage,
  })

const idsOf = ({ message }: Reply) =>
  new Set((message.tool_calls ?? []).flatMap(({ id }) => (typeof id === 'string' && id !== '' ? [id] : [])))

const call = (id: string | null | undefined, given = '{"a":1}', name = 'add'): WireCall => ({
  ...(id !== undefined && { id }),
  type: 'function',
  function: { name, arguments: given },
})

const REPLIES: Readonly<Record<string, Reply>> = {
  text: { message: { content: 'Hi' }, finish_reason: 'stop', usage: { prompt_tokens: 3, completion_tokens: 1 } },
  'no text at all': { message: { content: '' }, finish_reason: 'stop' },
  'null content': { message: { content: null }, finish_reason: 'stop' },
  'content left out': { message: {}, finish_reason: 'length' },
  reasoning_content: { message: { content: 'Hi', reasoning_content: 'Hm.' }, finish_reason: 'stop' },
  reasoning: { message: { content: 'Hi', reasoning: 'Hm.' }, finish_reason: 'stop' },
  'both kinds of reasoning': {
    message: { content: 'Hi', reasoning_content: 'Hm.', reasoning: 'Another' },
    finish_reason: 'stop',
  },
  'a call': { message: { content: null, tool_calls: [call('c1')] }, finish_reason: 'tool_calls' },
  'text and two calls': {
    message: { content: 'Adding', tool_calls: [call('c1'), call('c2', '{ "b" :2 }')] },
    finish_reason: 'tool_calls',
  },
  'a call without an id': { message: { content: '', tool_calls: [call(undefined), call('')] }, finish_reason: 'stop' },
  'a call with half its arguments': {
    message: { content: null, tool_calls: [call('c1', '{"a":')] },
    finish_reason: 'length',
  },
  'a refusal': { message: { content: null, refusal: 'I will not.' }, finish_reason: 'stop' },
  'a refusal after an answer': { message: { content: 'Well. ', refusal: 'No.' }, finish_reason: 'stop' },
  'content as parts (Mistral)': {
    message: {
      content: [
        { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
        { type: 'text', text: 'Hi' },
        { type: 'reference', reference_ids: [1] },
      ],
    },
    finish_reason: 'stop',
  },
  filtered: { message: { content: 'H' }, finish_reason: 'content_filter' },
  'filtered in a call': { message: { content: '', tool_calls: [call('c1')] }, finish_reason: 'content_filter' },
  'cut short': { message: { content: 'H' }, finish_reason: 'length' },
  'a reason that nobody knows': { message: { content: 'H' }, finish_reason: 'eos' },
  'no reason': { message: { content: 'H' }, finish_reason: null },
  'no usage': { message: { content: 'H' }, finish_reason: 'stop', usage: null },
  'usage with details': {
    message: { content: 'H' },
    finish_reason: 'stop',
    usage: {
      ...{ prompt_tokens: 10, completion_tokens: 7, total_tokens: 17 },
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 5 },
    },
  },
  'usage with details of nothing': {
    message: { content: 'H' },
    finish_reason: 'stop',
    usage: { prompt_tokens: 10, completion_tokens: 7, prompt_tokens_details: null, completion_tokens_details: {} },
  },
  'more tokens of reasoning than there are': {
    message: { content: 'H' },
    finish_reason: 'stop',
    usage: { prompt_tokens: 1, completion_tokens: 2, completion_tokens_details: { reasoning_tokens: 5 } },
  },
  'log-probabilities': {
    message: { content: 'Hi' },
    finish_reason: 'stop',
    logprobs: { content: [{ token: 'Hi', logprob: -0.5, bytes: [72, 105], top_logprobs: [] }] },
  },
}

const text = fc.oneof(fc.string(), fc.constantFrom('Ünï ✓ 🙂', 'data: x\n\n', '\r\n', '[DONE]'))
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null })
const count = fc.nat(1000)

const calls = fc
  .uniqueArray(
    fc.record({ id: fc.stringMatching(/^call_[a-z0-9]{1,8}$/), given: fc.json(), name: fc.constantFrom('a', 'b_2') }),
    {
      selector: ({ id }) => id,
      maxLength: 4,
    },
  )
  .map((all) => all.map(({ id, given, name }) => call(id, given, name)))

const replies: fc.Arbitrary<Reply> = fc.record({
  message: fc.record(
    { content: maybe(text), reasoning_content: maybe(text), refusal: maybe(text), tool_calls: calls },
    { requiredKeys: [] },
  ),
  finish_reason: fc.constantFrom('stop', 'length', 'tool_calls', 'content_filter', 'function_call', 'eos'),
  usage: maybe(
    fc
      .record({ prompt: count, cached: count, completion: count, reasoning: count, details: fc.boolean() })
      .map(({ prompt, cached, completion, reasoning, details }) => ({
        ...{ prompt_tokens: prompt + cached, completion_tokens: completion + reasoning },
        ...(details && {
          prompt_tokens_details: { cached_tokens: cached },
          completion_tokens_details: { reasoning_tokens: reasoning },
        }),
      })),
  ),
}) as fc.Arbitrary<Reply>

/** How a server cuts a reply into chunks. */
interface Cuts {
  /** Characters in a chunk. */
  readonly size: number
  /** Whether each chunk of a call says its id and name again. */
  readonly repeats: boolean
  /** Whether chunks of calls have an index; without one, each call is one chunk (Gemini). */
  readonly indexed: boolean
  readonly lines: '\n' | '\r\n'
  /** Where the usage is: in a chunk of its own, or in the last one. */
  readonly usageApart: boolean
  readonly placeholder: boolean
  readonly comment: boolean
}

function streamed({ message, finish_reason, usage, logprobs }: Reply, cuts: Cuts): string {
  const { content, reasoning_content, reasoning, refusal, tool_calls } = message
  const head = { id: 'cmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' }
  const chunks: object[] = []
  const say = (delta: object, more: object = {}) => chunks.push({ ...head, choices: [{ index: 0, delta, ...more }] })
  if (cuts.placeholder) chunks.push({ id: '', model: '', choices: [], usage: null, error: undefined })
  say({ role: 'assistant', content: '' })
  for (const [name, value] of Object.entries({ reasoning_content, reasoning, content, refusal }))
    if (typeof value === 'string') for (const part of pieces(value, cuts.size)) say({ [name]: part })
    else if (Array.isArray(value)) for (const part of value) say({ [name]: [part] })
  for (const [index, { id, function: called }] of (tool_calls ?? []).entries()) {
    const parts = cuts.indexed ? pieces(called.arguments, cuts.size) : [called.arguments]
    for (const [place, part] of (parts.length === 0 ? [''] : parts).entries()) {
      const first = place === 0 || cuts.repeats
      const named = { ...(first && { name: called.name }), arguments: part }
      say({ tool_calls: [{ ...(cuts.indexed && { index }), ...(first && { id }), function: named }] })
    }
  }
  say({}, { finish_reason, logprobs, ...(!cuts.usageApart && {}) })
  if (usage && cuts.usageApart) chunks.push({ ...head, choices: [], usage })
  else if (usage) Object.assign(chunks.at(-1)!, { usage })
  const end = cuts.lines + cuts.lines
  const comment = cuts.comment ? `: OPENROUTER PROCESSING${end}` : ''
  return (
    comment + [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((one) => `data: ${one}${end}`).join('')
  )
}

const pieces = (value: string, size: number) =>
  Array.from({ length: Math.ceil(value.length / size) }, (_, place) => value.slice(place * size, (place + 1) * size))

const anyCuts: fc.Arbitrary<Cuts> = fc.record({
  size: fc.integer({ min: 1, max: 12 }),
  repeats: fc.boolean(),
  indexed: fc.boolean(),
  lines: fc.constantFrom('\n', '\r\n'),
  usageApart: fc.boolean(),
  placeholder: fc.boolean(),
  comment: fc.boolean(),
})
const CUTS: Cuts = {
  ...{ size: 2, repeats: false, indexed: true, lines: '\n', usageApart: true, placeholder: true, comment: false },
}

describe('a reply means what it means to the provider of the AI SDK', () => {
  test.each(Object.entries(REPLIES))('%s', async (_, reply) => {
    const body = whole(reply)
    expect(ours(body, idsOf(reply))).toEqual(await theirs(body, idsOf(reply)))
  })

  test('any reply', async () => {
    await fc.assert(
      fc.asyncProperty(replies, async (reply) => {
        const body = whole(reply)
        expect(ours(body, idsOf(reply))).toEqual(await theirs(body, idsOf(reply)))
      }),
      { numRuns: 500 },
    )
  })
})

describe('a stream means what it means to the provider of the AI SDK', () => {
  // It takes a stream without a reason for its end for one that was cut off, even after [DONE].
  const ended = Object.entries(REPLIES).filter(([, { finish_reason }]) => typeof finish_reason === 'string')
  test.each(ended)('%s', async (_, reply) => {
    const body = streamed(reply, CUTS)
    expect(ours(body, idsOf(reply))).toEqual(await theirStream(body, idsOf(reply)))
  })

  test('any reply, cut in any way; and it means the same as the reply in one piece', async () => {
    await fc.assert(
      fc.asyncProperty(replies, anyCuts, async (reply, cuts) => {
        const body = streamed(reply, cuts)
        const read = ours(body, idsOf(reply))
        expect(read).toEqual(await theirStream(body, idsOf(reply)))
        expect(read).toEqual(ours(whole(reply), idsOf(reply)))
      }),
      { numRuns: 500 },
    )
  })

  const chunk = (...tool_calls: object[]) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls } }] })}\n\n`
  const END = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] })}\n\n`
  const fn = (name: string | undefined, given: string) => ({ function: { ...(name && { name }), arguments: given } })

  test.each([
    [
      'all calls have index 0',
      [chunk({ index: 0, id: 'c1', ...fn('add', '{"a":1}') }), chunk({ index: 0, id: 'c2', ...fn('add', '{"a":2}') })],
    ],
    [
      'the name comes after the id',
      [
        chunk({ index: 0, id: 'c1', function: { arguments: '' } }),
        chunk({ index: 0, ...fn('add', '{"a"') }),
        chunk({ index: 0, ...fn(undefined, ':1}') }),
      ],
    ],
    [
      'two calls by turns',
      [
        chunk({ index: 1, id: 'c2', ...fn('add', '') }, { index: 0, id: 'c1', ...fn('sub', '') }),
        chunk({ index: 0, ...fn(undefined, '{"x":0}') }),
        chunk({ index: 1, ...fn(undefined, '{"y":1}') }),
      ],
    ],
    ['no index and no id', [chunk(fn('add', '{"a":1}')), chunk(fn('sub', '{"a":2}'))]],
    [
      'an empty name in later chunks',
      [
        chunk({ index: 0, id: 'c1', ...fn('add', '{"a"') }),
        chunk({ index: 0, id: '', function: { name: '', arguments: ':1}' } }),
      ],
    ],
  ])('%s', async (_, chunks) => {
    const body = [...chunks, END].join('')
    const ids = new Set(['c1', 'c2'])
    expect(ours(body, ids)).toEqual(await theirStream(body, ids))
  })
})

describe('of its own', () => {
  test('an id that the server left out is the same when the reply is read again, and each call has another', () => {
    const body = whole(REPLIES['a call without an id']!)
    const ids = () => replyIn(body).message.calls!.map(({ id }) => id)
    expect(ids()).toEqual(ids())
    expect(new Set(ids()).size).toBe(2)
  })

  test('token ids and log-probabilities are read from a reply and from a stream alike', () => {
    const reply: Reply = {
      message: { content: 'Hi' },
      finish_reason: 'stop',
      logprobs: {
        content: [
          { id: 7, token: 'H', logprob: -0.5 },
          { id: 9, token: 'i', logprob: -0.25 },
        ],
      },
    }
    for (const body of [whole(reply), streamed(reply, CUTS)]) {
      const tokens = tokensOf(replyIn(body), { model: 't', tokens: true }, false)!
      expect([...tokens.completion]).toEqual([7, 9])
      expect([...tokens.logProbs!]).toEqual([-0.5, -0.25])
    }
  })

  test('a mark of the byte order in front does no harm', () => {
    expect(completionIn(`\uFEFF${whole(REPLIES.text!)}`)).toBeDefined()
    expect(completionIn(`\uFEFF${streamed(REPLIES.text!, CUTS)}`)).toBeDefined()
  })

  test.each([
    ['before the end', (body: string) => body.slice(0, body.indexOf('"finish_reason"'))],
    ['inside a chunk', (body: string) => body.slice(0, body.lastIndexOf('}'))],
    ['before it began', () => ': PROCESSING\n\n'],
  ])('a stream that was cut off %s is no answer', (_, cut) => {
    const body = cut(streamed(REPLIES.text!, { ...CUTS, usageApart: false }))
    expect(checkReply({ status: 200, headers: {}, body }).failure?.kind).toBe('transient')
  })

  test.each([
    ['in place of an answer', { error: { message: 'Overloaded', code: 503 } }, 'transient'],
    ['that names a status', { error: { message: 'Slow down', code: 429 } }, 'rate_limit'],
    [
      'inside the choice (OpenRouter)',
      { choices: [{ error: { message: 'Down', code: 502 }, message: { content: '' } }] },
      'transient',
    ],
    ['of null is none', { error: null, choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] }, undefined],
    [
      'of null in a chunk is none',
      `data: ${JSON.stringify({ error: null, choices: [{ delta: { content: 'Hi' }, finish_reason: 'stop' }] })}\n\n`,
      undefined,
    ],
    [
      'in a stream',
      `${streamed(REPLIES.text!, CUTS).split('data: [DONE]')[0]}data: ${JSON.stringify({ error: { message: 'Down', code: 500 } })}\n\n`,
      'transient',
    ],
    [
      'inside a chunk (OpenRouter)',
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error', error: { code: 429, message: 'Slow down' } }] })}\n\ndata: [DONE]\n\n`,
      'rate_limit',
    ],
  ])('an error with status 200 %s', (_, given, kind) => {
    const body = typeof given === 'string' ? given : JSON.stringify(given)
    expect(checkReply({ status: 200, headers: {}, body }).failure?.kind).toBe(kind)
  })
})
