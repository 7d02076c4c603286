import { ManyworldsError } from '../../errors.ts'
import { nextStep, recordStep } from '../../trajectory/record.ts'
import type { StepTokens } from '../../trajectory/step.ts'
import { isObject } from '../completion.ts'
import type { Completed, CompleteOptions } from '../generate.ts'
import { withoutSecretFields } from '../secret-fields.ts'
import { PROMPT } from '../wire-request.ts'
import { describe, filtered, send, underWay } from './chat.ts'
import { type ChatReply, contentText, replyIn, tokensOf, usageOf } from './chat-reply.ts'
import { mostTokens, samplingOf } from './chat-request.ts'
import { checkOptions, type OwnChecks } from './check-options.ts'
import { conversationsOf } from './conversations.ts'
import { generatedTokens, samplingFields } from './generate.ts'

/**
 * Implements `ctx.complete()`: continues from token ids, without a chat template. A conversation that passes its ids
 * from turn to turn is never tokenized again, so each prompt starts with the previous prompt and its completion.
 */
export async function complete(ctx: object, options: CompleteOptions): Promise<Completed> {
  const { model, signal } = checked(options)
  return underWay(ctx, model, signal, () => completeOnce(ctx, options))
}

async function completeOnce(ctx: object, options: CompleteOptions): Promise<Completed> {
  const { model: name, prompt, signal, role = 'agent' } = options
  const description = await describe(ctx, name)
  if (description.kind === 'object')
    throw new ManyworldsError(
      'REQUEST_INVALID',
      `ctx.complete(): model '${name}' is a provider object, which does not support completions; configure it with a \`baseURL\``,
    )
  const ids = typeof prompt === 'string' ? undefined : Int32Array.from(prompt)
  const fields = {
    model: description.model,
    ...{ logprobs: 1, return_token_ids: true, return_tokens: true, cache_prompt: true },
    ...description.extraBody,
    ...samplingFields(options),
  }
  const { model, ...rest } = fields
  const body = JSON.stringify({ model, prompt: ids ? [...ids] : prompt, ...rest })
  const request = { messages: ids ? [] : [{ role: 'user' as const, content: prompt }], tools: [], fields }
  const most = mostTokens(request, ids?.length)
  const answer = await send(ctx, name, description, '/completions', body, most, signal)
  const reply = replyIn(answer.body)
  const read = tokensOf(reply, description, 'response_format' in fields || 'grammar' in fields)
  const tokens = read && ids ? withPrompt(read, ids) : read
  // The ids sent are stored with the step's tokens, if it has any.
  const wireOfPrompt = () =>
    JSON.stringify({ model, [PROMPT]: ids && !tokens ? [...ids] : null, ...withoutSecretFields(rest) })
  const conversations = conversationsOf(ctx)
  const step = nextStep(ctx)
  const usage = usageOf(reply.count, description.price, answer.cached)
  void recordStep(ctx, {
    ...{ kind: 'model', role, policy: null },
    server: { model: typeof reply.completion.model === 'string' ? reply.completion.model : description.model },
    request: { from: null, keep: 0, added: request.messages, tools: '', wire: wireOfPrompt() },
    reply: { ...reply.message, wire: answer.body },
    ...{ finish: reply.finish, cached: answer.cached, tokens: tokens && conversations.placeTokens(tokens) },
    ...{ sampling: samplingOf(request), usage, ms: Math.round(answer.ms * 1000) / 1000, retries: answer.retries },
  })
  conversations.remember(step, request.messages, reply.message, tokens)
  if (reply.finish === 'content_filter') throw filtered(name)
  const cachedTokens = cachedIn(reply)
  return {
    text: contentText(reply.message),
    finish: reply.finish,
    usage,
    tokens: generatedTokens(tokens),
    cachedTokens,
    step,
  }
}

/** The ids sent are exactly the prompt's. */
function withPrompt({ promptUnknown: _, ...tokens }: StepTokens, ids: Int32Array): StepTokens {
  return { ...tokens, from: null, tail: ids }
}

/** From `usage`, or from `timings` of llama.cpp. */
function cachedIn({ count, completion }: ChatReply): number | undefined {
  const { timings } = completion
  const timed = isObject(timings) ? (timings as { cache_n?: unknown }).cache_n : undefined
  return typeof timed === 'number' ? timed : count.cached
}

const isPrompt = (prompt: unknown) =>
  typeof prompt === 'string' ||
  prompt instanceof Int32Array ||
  (Array.isArray(prompt) && prompt.every((id) => Number.isInteger(id) && id >= 0))

const OWN: OwnChecks<CompleteOptions> = {
  prompt: [isPrompt, 'must be a string or a list of token ids (whole numbers of at least 0)'],
}

const checked = (options: CompleteOptions): CompleteOptions =>
  checkOptions('complete', "{ model: '…', prompt: [1, 2, 3] }", options, OWN)
