import { ManyworldsError } from '../../errors.ts'
import { nextStep } from '../../trajectory/record.ts'
import type { StepTokens } from '../../trajectory/step.ts'
import type { Generated, GeneratedTokens, GenerateOptions } from '../generate.ts'
import { jsonFormat } from '../response-format.ts'
import { asMessages, callsOf, chat, describe, underWay } from './chat.ts'
import { contentText, thoughtsIn, usageOf } from './chat-reply.ts'
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

function checked<Output>(options: GenerateOptions<Output>): GenerateOptions<Output> {
  const wrong = (what: string) => new ManyworldsError('REQUEST_INVALID', `ctx.generate(): ${what}`)
  if (typeof options !== 'object' || options === null)
    throw wrong("the argument must be an object such as { model: '…', prompt: '…' }")
  const { model, prompt } = options
  if (typeof model !== 'string') throw wrong("`model` must be the name of one of the run's models")
  if (typeof prompt !== 'string' && !Array.isArray(prompt))
    throw wrong('`prompt` must be a string or a list of messages')
  return options
}
