import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CallOptions } from '../../dist/models/language-model.js'
import { jsonFormat } from '../../dist/models/response-format.js'
import { withoutSecretFields } from '../../dist/models/secret-fields.js'
import type { ModelDescription } from '../../dist/models/settings.js'
import { messagesOf } from '../../dist/models/worker/chat-messages.js'
import { bodyText, fieldsOf, mostTokens, sentText, toolsOf, wireOf } from '../../dist/models/worker/chat-request.js'
import { llmAgent } from '../../src/agents/llm-agent.ts'
import { complete } from '../../src/models/worker/complete.ts'
import { generate } from '../../src/models/worker/generate.ts'
import type { Message } from '../../src/trajectory/step.ts'
import { callOptions, prompts, type SdkCall, type SdkPrompt } from './prompts.ts'

/**
 * Requests of ours against those of `@ai-sdk/openai-compatible`, body for body. They differ on purpose:
 * - `topK` is sent as `top_k`, which vLLM, SGLang and llama.cpp know; the provider drops it.
 * - An empty list of stop sequences is left out, as is the choice of a tool where there are no tools: servers refuse both.
 * - The arguments of a call that the model made are sent as it wrote them; the SDK parses them and writes them anew.
 * - A text file whose type is not `text/…` is sent as text, and a text file by its URL is refused; the provider does the opposite.
 * - A call without arguments has `{}`; the provider leaves them out.
 * - A schema is strict only if OpenAI accepts it as such.
 */

const DESCRIPTION: ModelDescription = {
  ...{ kind: 'server', model: 'm', via: 'driver', price: undefined, extraBody: undefined, tokens: false, permitMs: 1 },
}

const NOBODY = () => undefined
const NO_IDS = () => new Int32Array(0)

function ours(options: SdkCall, earlier: (id: string) => Message | undefined = NOBODY): string {
  const call = options as unknown as CallOptions
  const { fields } = fieldsOf(DESCRIPTION, call)
  const request = { messages: messagesOf(call.prompt, earlier), tools: toolsOf(call), fields }
  const body = bodyText(request)
  // What a step has is enough to make the body again, byte for byte, but for secrets.
  const recorded = bodyText({ ...request, fields: withoutSecretFields(fields) })
  const tools = request.tools.length === 0 ? '' : JSON.stringify(request.tools)
  expect(sentText(JSON.parse(JSON.stringify(request.messages)) as Message[], tools, wireOf(request), NO_IDS)).toBe(
    recorded,
  )
  return body
}

async function theirs(options: SdkCall): Promise<string> {
  let sent = ''
  const provider = createOpenAICompatible({
    name: 'manyworlds',
    baseURL: 'http://server.invalid/v1',
    supportsStructuredOutputs: true,
    fetch: async (_, init) => {
      sent = init!.body as string
      return Response.json({ choices: [{ message: { content: 'ok' }, finish_reason: 'stop' }] })
    },
  })
  await provider('m').doGenerate(options)
  return withStrict(sent)
}

function withStrict(sent: string): string {
  const body = JSON.parse(sent)
  const { schema, strict, name, description } = body.response_format?.json_schema ?? {}
  if (strict === true) body.response_format = jsonFormat(schema, { name, description }).format
  return JSON.stringify(body)
}

const user = (...content: unknown[]) => [{ role: 'user', content }] as unknown as SdkPrompt
const PNG = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 1, 2, 3])
const JPEG = Uint8Array.from([0xff, 0xd8, 0xff, 0xe0])
const WAV = Uint8Array.from([...Buffer.from('RIFF'), 1, 0, 0, 0, ...Buffer.from('WAVE'), 7])
const file = (mediaType: string, data: object, filename?: string) => ({
  ...{ type: 'file', mediaType, data },
  ...(filename !== undefined && { filename }),
})
const bytes = (data: Uint8Array | string) => ({ type: 'data', data })
const call = (input: unknown) => ({ type: 'tool-call', toolCallId: 'c1', toolName: 'add', input })
const result = (output: object) =>
  [
    { role: 'assistant', content: [call({ a: 1 })] },
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 'add', output }] },
  ] as unknown as SdkPrompt
const assistant = (...content: unknown[]) => [{ role: 'assistant', content }] as unknown as SdkPrompt
const tools = [
  { type: 'function', name: 'add', description: 'Adds', inputSchema: { type: 'object' }, strict: true },
  { type: 'function', name: 'plain', inputSchema: {} },
] as unknown as NonNullable<SdkCall['tools']>

const PROMPTS: Readonly<Record<string, SdkPrompt>> = {
  'no messages': [],
  'a system message': [{ role: 'system', content: 'Be brief.' }],
  'one text': user({ type: 'text', text: 'Hi' }),
  'two texts': user({ type: 'text', text: 'Hi' }, { type: 'text', text: '' }),
  'a user who says nothing': user(),
  'an image as bytes': user({ type: 'text', text: 'What?' }, file('image/png', bytes(PNG))),
  'an image as base64': user(file('image/jpeg', bytes(Buffer.from(JPEG).toString('base64')))),
  'an image by URL': user(file('image/*', { type: 'url', url: new URL('https://example.com/a b.png?x=ü') })),
  'an image of which nobody says the kind': user(file('image/*', bytes(PNG)), file('image', bytes(JPEG))),
  'a sound': user(file('audio/mpeg', bytes(WAV)), file('audio/*', bytes(WAV))),
  'a document': user(
    file('application/pdf', bytes('JVBERi0='), 'a.pdf'),
    file('application/pdf', bytes(Uint8Array.from([1]))),
  ),
  'a text file': user(file('text/csv', bytes(new TextEncoder().encode('a,b\n1,ü')))),
  'text that is not UTF-8, with a mark in front': user(
    file('text/plain', bytes(Uint8Array.from([0xef, 0xbb, 0xbf, 65, 0xff]))),
  ),
  'text, reasoning and a call': assistant(
    { type: 'reasoning', text: 'Hm. ' },
    { type: 'reasoning', text: 'Right.' },
    { type: 'text', text: 'I add.' },
    call({ a: 1, b: [null, 'ü'] }),
  ),
  'only a call': assistant(call({})),
  'arguments as a text that is JSON': assistant(call('{ "a":1 }')),
  'arguments as a text that is not JSON': assistant(call('{ "a":')),
  'arguments with a big integer': assistant(call({ a: 12345678901234567890n })),
  'an answer without a word': assistant(),
  'parts that chat completions do not have': assistant(
    { type: 'text', text: 'Look' },
    { type: 'custom', kind: 'x.y' },
    { type: 'reasoning-file', mediaType: 'image/png', data: bytes(PNG) },
  ),
  'a result that is text': result({ type: 'text', value: '3' }),
  'a result that is JSON': result({ type: 'json', value: { sum: 3, list: [1, null] } }),
  'a result that is null': result({ type: 'json', value: null }),
  'a failure in words': result({ type: 'error-text', value: 'no such file' }),
  'a failure as JSON': result({ type: 'error-json', value: { code: 2 } }),
  'a call that was denied': result({ type: 'execution-denied' }),
  'a call that was denied for a reason': result({ type: 'execution-denied', reason: 'Not now.' }),
  'a result of several parts': result({
    type: 'content',
    value: [{ type: 'text', text: 'here' }, file('image/png', bytes('aGk='))],
  }),
  'a result that was approved': [
    { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'a', approved: true }] },
  ],
}

const HI = user({ type: 'text', text: 'Hi' })

const OPTIONS: Readonly<Record<string, Omit<SdkCall, 'prompt'>>> = {
  sampling: { temperature: 0, topP: 0.5, maxOutputTokens: 7, presencePenalty: 1, frequencyPenalty: -1, seed: 0 },
  'stop sequences': { stopSequences: ['\n', 'END'] },
  tools: { tools },
  'no tools': { tools: [], toolChoice: { type: 'required' } },
  'a tool to call': { tools, toolChoice: { type: 'tool', toolName: 'add' } },
  'any tool to call': { tools, toolChoice: { type: 'required' } },
  'no tool to call': { tools, toolChoice: { type: 'none' } },
  'a tool of a provider among others': {
    tools: [...tools, { type: 'provider', id: 'x.search', name: 'search', args: {} }],
    toolChoice: { type: 'auto' },
  },
  text: { responseFormat: { type: 'text' } },
  'JSON of any form': { responseFormat: { type: 'json' } },
  'JSON of a schema': { responseFormat: { type: 'json', schema: { type: 'object' } } },
  'JSON of a schema with a name': {
    responseFormat: { type: 'json', schema: { type: 'object' }, name: 'answer', description: 'What it is' },
  },
  'a schema that need not be kept strictly': {
    responseFormat: { type: 'json', schema: { type: 'object' } },
    providerOptions: { openaiCompatible: { strictJsonSchema: false } },
  },
  reasoning: { reasoning: 'low' },
  'reasoning as the provider likes': { reasoning: 'provider-default' },
  'fields for the server': { providerOptions: { manyworlds: { top_k: 4, user: 'me' }, elsewhere: { x: 1 } } },
  'options with names of the SDK': {
    reasoning: 'low',
    providerOptions: { openaiCompatible: { reasoningEffort: 'high', textVerbosity: 'low', user: 'me' } },
  },
}

test('the tokens of a call are estimated by its parts, not by its bytes', () => {
  const picture = `data:image/png;base64,${'A'.repeat(333_000)}`
  const text = 'x'.repeat(3000)
  const messages: Message[] = [
    { role: 'system', content: text },
    {
      role: 'user',
      content: [
        { type: 'text', text },
        { type: 'image_url', image_url: { url: picture } },
      ],
    },
    { role: 'assistant', content: null, calls: [{ id: 'c', name: 'look', raw: 'y'.repeat(296) }] },
  ]
  const most = (request: object, carried?: number) =>
    mostTokens({ messages, tools: [], fields: { model: 'm', max_tokens: 50 }, ...request }, carried)
  expect(most({})).toBe(2100 + 1500 + 50)
  expect(most({ fields: { model: 'm' } })).toBe(2100 + 1500 + 1024)
  // The ids of earlier messages are those messages again.
  expect(most({}, 1800)).toBe(2100 + 1500 + 50)
})

describe('a request is the one that the provider of the AI SDK sends', () => {
  test.each(Object.entries(PROMPTS))('%s', async (_, prompt) => {
    expect(JSON.parse(ours({ prompt }))).toEqual(JSON.parse(await theirs({ prompt })))
  })

  test.each(Object.entries(OPTIONS))('%s', async (_, options) => {
    const call = { prompt: HI, ...options }
    expect(JSON.parse(ours(call))).toEqual(JSON.parse(await theirs(call)))
  })

  test('any prompt with any options', async () => {
    await fc.assert(
      fc.asyncProperty(prompts, callOptions, async (prompt, options) => {
        const call = { ...options, prompt }
        expect(JSON.parse(ours(call))).toEqual(JSON.parse(await theirs(call)))
      }),
      { numRuns: 500 },
    )
  })
})

describe('on purpose it is not', () => {
  test('top_k is sent', async () => {
    const call = { prompt: HI, topK: 5 }
    expect(JSON.parse(ours(call))).toMatchObject({ top_k: 5 })
    expect(JSON.parse(await theirs(call))).not.toHaveProperty('top_k')
  })

  test('what servers refuse is left out: no stop sequences at all, a choice among no tools', async () => {
    const provided = [{ type: 'provider' as const, id: 'x.search' as const, name: 'search', args: {} }]
    const call = { prompt: HI, stopSequences: [], tools: provided, toolChoice: { type: 'required' as const } }
    expect(Object.keys(JSON.parse(ours(call)))).toEqual(['model', 'messages'])
    expect(JSON.parse(await theirs(call))).toMatchObject({ stop: [], tools: [], tool_choice: 'required' })
  })

  test('a call without arguments has empty ones', () => {
    expect(ours({ prompt: assistant(call(undefined)) })).toContain('"arguments":"{}"')
  })

  test('a text file of a type that is not text is text', () => {
    const prompt = user(file('application/json', { type: 'text', text: '{}' }), { type: 'text', text: 'x' })
    expect(JSON.parse(ours({ prompt })).messages[0].content[0]).toEqual({ type: 'text', text: '{}' })
  })

  test.each([
    ['a text file by its URL', file('text/plain', { type: 'url', url: new URL('https://example.com/a.txt') })],
    ['a document by its URL', file('application/pdf', { type: 'url', url: new URL('https://example.com/a.pdf') })],
    ['a sound that is neither WAV nor MP3', file('audio/ogg', bytes(WAV))],
    ['an archive', file('application/zip', bytes(PNG))],
    ['an image that nobody can tell', file('image/*', bytes(Uint8Array.from([1, 2, 3])))],
  ])('%s is refused before anything is sent', (_, part) => {
    expect(() => ours({ prompt: user(part) })).toThrow('chat completions do not support')
  })
})

describe('a reply that goes back to the model', () => {
  const said: Message = {
    role: 'assistant',
    content: 'Adding.',
    reasoning: 'Hm.',
    calls: [
      { id: 'c1', name: 'add', raw: '{"b":2,  "a":1.0}' },
      { id: 'c2', name: 'add', raw: '{"a": ' },
    ],
  }
  const earlier = (id: string) => (id === 'c1' || id === 'c2' ? said : undefined)
  const parts = {
    reasoning: { type: 'reasoning', text: 'Hm.' },
    text: { type: 'text', text: 'Adding.' },
    first: { ...call({ b: 2, a: 1 }), toolCallId: 'c1' },
    second: { ...call({ rawInvalidInput: '{"a": ' }), toolCallId: 'c2' },
  }
  const sent = (...given: object[]) => JSON.parse(ours({ prompt: assistant(...given) }, earlier)).messages[0]
  const wire = ({ id, name, raw }: NonNullable<Message['calls']>[number]) => ({
    ...{ id, type: 'function', function: { name, arguments: raw } },
  })

  test('has the arguments that the model wrote', () => {
    expect(sent(parts.reasoning, parts.text, parts.first, parts.second)).toEqual({
      ...{ role: 'assistant', content: 'Adding.', reasoning_content: 'Hm.' },
      tool_calls: said.calls!.map(wire),
    })
  })

  test('has no reasoning that the agent took out, and no call', () => {
    expect(sent(parts.text, parts.first)).toEqual({
      ...{ role: 'assistant', content: 'Adding.', tool_calls: [wire(said.calls![0]!)] },
    })
  })

  test('has the other name, if the SDK repaired the call', () => {
    expect(sent(parts.text, { ...parts.first, toolName: 'sum' }).tool_calls[0].function).toEqual({
      name: 'sum',
      arguments: '{"b":2,"a":1}',
    })
  })
})

describe('a call with a mistake is refused before anything is asked', () => {
  const right = { model: 'm', prompt: 'hello' }
  const refused = async (call: Promise<unknown>, words: string) =>
    expect(call).rejects.toMatchObject({ code: 'REQUEST_INVALID', message: expect.stringContaining(words) })

  test.each<[object, string]>([
    [{ temprature: 1 }, `unknown option 'temprature'; did you mean "temperature"?`],
    [{ max_tokens: 5 }, `unknown option 'max_tokens'; did you mean "maxTokens"?`],
    [{ temperature: 'hot' }, "`temperature` must be a number, it is 'hot'"],
    [{ topP: Number.NaN }, '`topP` must be a number, it is NaN'],
    [{ maxTokens: 0.5 }, '`maxTokens` must be a whole number above 0, it is 0.5'],
    [{ seed: null }, '`seed` must be a whole number, it is null'],
    [{ stop: 'END' }, '`stop` must be a list of texts'],
    [{ extraBody: ['top_k'] }, '`extraBody` must be an object'],
    [{ signal: {} }, '`signal` must be an AbortSignal'],
    [{ role: 'critic' }, "`role` must be 'agent', 'judge' or 'user'"],
    [{ model: undefined }, "`model` must be the name of one of the run's models"],
  ])('ctx.generate and ctx.complete: %o', async (wrong, words) => {
    await refused(generate({}, { ...right, ...wrong } as never), `ctx.generate(): ${words}`)
    await refused(complete({}, { ...right, ...wrong } as never), `ctx.complete(): ${words}`)
  })

  test.each<[object, string]>([
    [{ prompt: [] }, '`prompt` must be a text or a list of messages, it is an empty list'],
    [{ prompt: undefined }, '`prompt` must be'],
    [{ prompt: [{ role: 'usr', content: 'hi' }] }, `message 1 of \`prompt\` has the role 'usr'; did you mean "user"?`],
    [{ prompt: [{ role: 'user', content: 'hi' }, null] }, 'message 2 of `prompt`'],
    [{ system: 3 }, '`system` must be a text'],
    [{ schema: 'x' }, "`schema` must be a zod schema or a JSON schema, it is 'x'"],
  ])('ctx.generate: %o', async (wrong, words) => {
    await refused(generate({}, { ...right, ...wrong } as never), words)
  })

  test('llmAgent: an output that is no schema', () => {
    expect(() => llmAgent({ name: 'a', model: 'm', output: 'text' as never })).toThrow("`output` of agent 'a' must be")
  })

  test('ctx.complete: a prompt that is no list of token ids', async () => {
    await refused(
      complete({}, { ...right, prompt: ['a'] } as never),
      '`prompt` must be a string or a list of token ids',
    )
  })
})
