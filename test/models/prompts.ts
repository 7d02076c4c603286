import type { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import fc from 'fast-check'

type Model = ReturnType<ReturnType<typeof createOpenAICompatible>>
export type SdkCall = Parameters<Model['doGenerate']>[0]
export type SdkPrompt = SdkCall['prompt']
export type SdkContent = Awaited<ReturnType<Model['doGenerate']>>['content'][number]
type SdkStream = Awaited<ReturnType<Model['doStream']>>['stream']
export type SdkStreamPart = SdkStream extends ReadableStream<infer Part> ? Part : never

/** Prompts and options of the AI SDK, as `generateText` and `ToolLoopAgent` give them to a language model. */

const text = fc.oneof(fc.string(), fc.constantFrom('', '42', 'Ünïcödé ✓ 🙂', '\u2028"\\\n', '</s><|im_end|>'))
const id = fc.string({ minLength: 1, maxLength: 12 })
const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<never>

const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
const png = fc.uint8Array({ maxLength: 20 }).map((rest) => Uint8Array.from([...PNG, ...rest]))
const asBase64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const eitherForm = (bytes: fc.Arbitrary<Uint8Array>) =>
  bytes.chain((given) => fc.constantFrom<Uint8Array | string>(given, asBase64(given)))
const dataOf = (bytes: fc.Arbitrary<Uint8Array>) => fc.record({ type: fc.constant('data'), data: eitherForm(bytes) })
const anyBytes = fc.uint8Array({ maxLength: 40 })
const url = fc.webUrl().map((address) => ({ type: 'url', url: new URL(address) }))

const file = (mediaType: fc.Arbitrary<string>, data: fc.Arbitrary<object>) =>
  fc.record(
    { type: fc.constant('file'), mediaType, data, filename: fc.string() },
    { requiredKeys: ['type', 'mediaType', 'data'] },
  )

const textPart = fc.record({ type: fc.constant('text'), text })
const userPart = fc.oneof(
  { weight: 4, arbitrary: textPart },
  file(fc.constantFrom('image/png', 'image/jpeg', 'image/webp'), fc.oneof(dataOf(anyBytes), url)),
  file(fc.constantFrom('image/*', 'image'), dataOf(png)),
  file(fc.constantFrom('image/*', 'image'), url),
  file(fc.constant('video/mp4'), fc.oneof(dataOf(anyBytes), url)),
  file(fc.constantFrom('audio/wav', 'audio/mp3', 'audio/mpeg'), dataOf(anyBytes)),
  file(fc.constant('application/pdf'), dataOf(anyBytes)),
  file(fc.constantFrom('text/plain', 'text/csv'), dataOf(fc.string().map((given) => new TextEncoder().encode(given)))),
  file(
    fc.constant('text/plain'),
    text.map((given) => ({ type: 'text', text: given })),
  ),
)

const toolOutput = fc.oneof(
  fc.record({ type: fc.constantFrom('text', 'error-text'), value: text }),
  fc.record({ type: fc.constantFrom('json', 'error-json'), value: json }),
  fc.record({ type: fc.constant('execution-denied'), reason: text }, { requiredKeys: ['type'] }),
  fc.record({
    type: fc.constant('content'),
    value: fc.array(fc.oneof(textPart, file(fc.constant('image/png'), dataOf(anyBytes))), { maxLength: 3 }),
  }),
)

const assistantPart = fc.oneof(
  textPart,
  fc.record({ type: fc.constant('reasoning'), text }),
  fc.record({
    type: fc.constant('tool-call'),
    toolCallId: id,
    toolName: id,
    input: fc.oneof(fc.dictionary(id, json), json, fc.constantFrom('{"a": 1}', '{"half": ', 'words')),
  }),
)

const message = fc.oneof(
  fc.record({ role: fc.constant('system'), content: text }),
  fc.record({ role: fc.constant('user'), content: fc.array(userPart, { maxLength: 3 }) }),
  fc.record({ role: fc.constant('assistant'), content: fc.array(assistantPart, { maxLength: 4 }) }),
  fc.record({
    role: fc.constant('tool'),
    content: fc.array(
      fc.oneof(
        fc.record({ type: fc.constant('tool-result'), toolCallId: id, toolName: id, output: toolOutput }),
        fc.record({ type: fc.constant('tool-approval-response'), approvalId: id, approved: fc.boolean() }),
      ),
      { maxLength: 3 },
    ),
  }),
)

export const prompts = fc.array(message, { maxLength: 6 }) as unknown as fc.Arbitrary<SdkPrompt>

const schema = fc.constantFrom({ type: 'object', properties: { n: { type: 'number' } } }, {}, { type: 'string' })
const number = fc.oneof(fc.double({ min: 0, max: 2, noNaN: true }), fc.constantFrom(0, 1, -0))

const tool = fc.record(
  { type: fc.constant('function'), name: id, description: text, inputSchema: schema, strict: fc.boolean() },
  { requiredKeys: ['type', 'name', 'inputSchema'] },
)

export const callOptions = fc.record(
  {
    maxOutputTokens: fc.nat(),
    temperature: number,
    topP: number,
    presencePenalty: number,
    frequencyPenalty: number,
    stopSequences: fc.array(text, { minLength: 1, maxLength: 3 }),
    seed: fc.integer(),
    reasoning: fc.constantFrom('provider-default', 'none', 'minimal', 'low', 'high', 'xhigh'),
    tools: fc.array(tool, { maxLength: 3 }),
    toolChoice: fc.oneof(
      fc.record({ type: fc.constantFrom('auto', 'none', 'required') }),
      fc.record({ type: fc.constant('tool'), toolName: id }),
    ),
    responseFormat: fc.oneof(
      fc.record({ type: fc.constant('text') }),
      fc.record({ type: fc.constant('json'), schema, name: id, description: text }, { requiredKeys: ['type'] }),
    ),
    providerOptions: fc.record(
      {
        manyworlds: fc.record(
          { top_k: fc.nat(), chat_template_kwargs: json, user: text, strictJsonSchema: fc.boolean() },
          { requiredKeys: [] },
        ),
        openaiCompatible: fc.record(
          { user: text, reasoningEffort: fc.constantFrom('low', 'high'), textVerbosity: fc.constant('low') },
          { requiredKeys: [] },
        ),
        other: fc.record({ ignored: json }),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
) as unknown as fc.Arbitrary<Omit<SdkCall, 'prompt'>>
