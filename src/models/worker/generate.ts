import { didYouMean } from '../../did-you-mean.ts'
import { ManyworldsError } from '../../errors.ts'
import { nextStep } from '../../trajectory/record.ts'
import type { Message, StepTokens } from '../../trajectory/step.ts'
import type { Generated, GeneratedTokens, GenerateOptions } from '../generate.ts'
import { jsonFormat } from '../response-format.ts'
import { asMessages, callsOf, chat, describe, underWay } from './chat.ts'
import { contentText, thoughtsIn, usageOf } from './chat-reply.ts'
import { checkOptions, type OwnChecks, wrongCall } from './check-options.ts'
import { languageModel } from './language-model.ts'
import { jsonSchemaOf, outputOf, sentSchemaOf } from './output.ts'

/** Implements `ctx.generate()`: one question, one answer. */
export async function generate<Output>(ctx: object, options: GenerateOptions<Output>): Promise<Generated<Output>> {
  const { model, signal } = checked(options)
  return underWay(ctx, model, signal, () => generateOnce(ctx, options))
}

async function generateOnce<Output>(ctx: object, options: GenerateOptions<Output>): Promise<Generated<Output>> {
  const { model: name, prompt, system, schema, signal, role } = options
  const description = await describe(ctx, name)
  if (description.kind === 'object') return generateByObject(ctx, options)
  const messages = asMessages(prompt, system)
  const { format, notStrict } = schema ? jsonFormat(await jsonSchemaOf(schema), { nullable: true }) : {}
  if (notStrict !== undefined) callsOf(ctx).notStrict(name, notStrict)
  const fields = {
    model: description.model,
    ...(description.tokens && { logprobs: true, top_logprobs: 1, return_token_ids: true }),
    ...description.extraBody,
    ...samplingFields(options),
    ...(format && { response_format: format }),
  }
  const { reply, answer, tokens, step } = await chat(
    ctx,
    name,
    description,
    { messages, tools: [], fields },
    { signal, role },
  )
  const text = contentText(reply.message)
  return {
    text,
    output: (schema ? await outputOf(schema, text, name, reply.finish) : undefined) as Output,
    reasoning: thoughtsIn(reply.message) || undefined,
    finish: reply.finish,
    usage: usageOf(reply.count, description.price, answer.cached),
    tokens: generatedTokens(tokens),
    step,
  }
}

export const generatedTokens = (tokens: StepTokens | null): GeneratedTokens | undefined =>
  tokens ? { ids: tokens.completion, logProbs: tokens.logProbs } : undefined

/** The same for an object of an AI SDK provider. */
async function generateByObject<Output>(ctx: object, options: GenerateOptions<Output>): Promise<Generated<Output>> {
  const { model: name, prompt, system, schema, maxTokens, temperature, topP, seed, stop, signal, role } = options
  const messages = asMessages(prompt, system)
  const unusable = messages.find(({ role, content }) => role === 'tool' || typeof content !== 'string')
  if (unusable)
    throw new ManyworldsError(
      'REQUEST_INVALID',
      `ctx.generate(): model '${name}' is a provider object, which accepts only text messages here; for others, use generateText({ model: ctx.model('${name}'), … })`,
    )
  const result = await languageModel(ctx, name, { role }).doGenerate({
    prompt: messages.map(({ role, content }) =>
      role === 'system'
        ? { role, content: content as string }
        : { role: role as 'user' | 'assistant', content: [{ type: 'text', text: content as string }] },
    ),
    ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(seed !== undefined && { seed }),
    ...(stop && { stopSequences: stop }),
    ...(schema && { responseFormat: { type: 'json', schema: await sentSchemaOf(schema) } }),
    ...(signal && { abortSignal: signal }),
  })
  const text = result.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const reasoning = result.content.map((part) => (part.type === 'reasoning' ? part.text : '')).join('')
  const { inputTokens, outputTokens } = result.usage
  const finish = result.finishReason.raw ?? result.finishReason.unified
  return {
    text,
    output: (schema ? await outputOf(schema, text, name, finish) : undefined) as Output,
    reasoning: reasoning || undefined,
    finish,
    usage: {
      ...(inputTokens.total !== undefined && { inputTokens: inputTokens.total }),
      ...(outputTokens.total !== undefined && { outputTokens: outputTokens.total }),
    },
    tokens: undefined,
    step: nextStep(ctx) - 1,
  }
}

/** The body fields of a call's sampling options. */
export function samplingFields(
  options: Pick<GenerateOptions, 'maxTokens' | 'temperature' | 'topP' | 'seed' | 'stop' | 'extraBody'>,
): Record<string, unknown> {
  const { maxTokens, temperature, topP, seed, stop, extraBody } = options
  const fields = { max_tokens: maxTokens, temperature, top_p: topP, seed, stop: stop && [...stop] }
  return { ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)), ...extraBody }
}

const OWN: OwnChecks<GenerateOptions> = {
  prompt: [
    (value) => typeof value === 'string' || (Array.isArray(value) && value.length > 0),
    'must be a text or a list of messages',
  ],
  system: [(value) => typeof value === 'string', 'must be a text'],
  schema: [
    // Schemas of some libraries are functions.
    (value) => (typeof value === 'object' && value !== null) || typeof value === 'function',
    'must be a zod schema or a JSON schema',
  ],
}

const ROLES = ['system', 'user', 'assistant', 'tool'] satisfies Message['role'][]

function checked<Output>(given: GenerateOptions<Output>): GenerateOptions<Output> {
  const options = checkOptions('generate', "{ model: '…', prompt: '…' }", given, OWN)
  const { prompt } = options
  const wrong = typeof prompt === 'string' ? -1 : prompt.findIndex((message) => !ROLES.includes(message?.role))
  if (wrong >= 0) {
    const role = String((prompt[wrong] as Message | null)?.role)
    throw wrongCall(
      'generate',
      `message ${wrong + 1} of \`prompt\` has the role '${role}'${didYouMean(role, ROLES)}; the roles are ${ROLES.join(', ')}`,
    )
  }
  return options
}
