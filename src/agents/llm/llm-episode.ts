import type { Context } from '../../agent.ts'
import { ManyworldsError } from '../../errors.ts'
import type { OutputSchema } from '../../models/generate.ts'
import { languageModel } from '../../models/worker/language-model.ts'
import { jsonSchemaOf, outputOf } from '../../models/worker/output.ts'
import { endEpisode, type Truncation } from '../../trajectory/episode.ts'
import type { LlmAgentOptions, LlmAgentParams } from '../llm-agent.ts'
import { type ActingModel, callOptions, describedTools, instructionsOf, temperatureOf } from './acting-model.ts'
import { type AiSdk, type Generation, loadAi } from './load-ai.ts'
import { type LlmTools, recordedTools } from './recorded-tools.ts'
import { Spending } from './spending.ts'

type Options = LlmAgentOptions<unknown, unknown, string>

/** One episode: `ToolLoopAgent` has the loop, and what it calls is ours. */
export async function runEpisode(
  options: Options,
  input: unknown,
  ctx: Context<LlmAgentParams, ActingModel>,
): Promise<unknown> {
  const { params, state: acting } = ctx
  const { output, stopWhen, settings = {} } = options
  const ai = await loadAi()
  const spending = new Spending(params)
  const tooLong = new AbortController()
  const signal = params.timeoutMs === null ? ctx.signal : AbortSignal.any([ctx.signal, tooLong.signal])
  const timer =
    params.timeoutMs === null ? undefined : setTimeout(() => tooLong.abort(new Cut('timeout')), params.timeoutMs)
  const texts: string[] = []
  const limit = ({ steps }: { readonly steps: readonly { readonly text: string }[] }) => {
    const text = steps.at(-1)?.text
    if (text) texts.push(text)
    return spending.reached !== undefined
  }
  const [instructions, temperature] = [instructionsOf(acting, params), temperatureOf(acting, params)]
  try {
    const tools = describedTools(acting, await toolsFor(options, input, ctx))
    const agent = new ai.ToolLoopAgent({
      ...settings,
      model: languageModel(ctx, acting.model, { recordsTools: true, spent: spending.add, ...callOptions(acting, ctx) }),
      ...(instructions !== undefined && { instructions }),
      tools: recordedTools(ctx, tools, params.toolTimeoutMs),
      stopWhen: [limit, ...listOf(stopWhen)],
      maxRetries: 0,
      ...(output && { output: await outputSpec(ai, output) }),
      ...(temperature !== undefined && { temperature }),
      ...(params.maxOutputTokens !== null && { maxOutputTokens: params.maxOutputTokens }),
    })
    const generation = await raced(agent.generate({ ...promptOf(options, input), abortSignal: signal }), signal)
    return await answerOf(options, acting, generation, spending, ctx)
  } catch (error) {
    // The agent's own clock has ended the episode, which is graded as far as it came.
    if (!tooLong.signal.aborted || ctx.signal.aborted) throw await meant(error, options, acting)
    return cut(options, 'timeout', texts.at(-1) ?? '', ctx)
  } finally {
    clearTimeout(timer)
  }
}

class Cut extends Error {}

/** The SDK's own waits end with the signal; a call that does not is not waited for. */
async function raced<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const over = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  over.catch(() => {})
  work.catch(() => {})
  return Promise.race([work, over])
}

/** What the SDK throws, in our words where it is about what the model said. */
async function meant(error: unknown, { output }: Options, { model }: ActingModel): Promise<unknown> {
  const { name, text, finishReason, message } = error as Record<string, unknown>
  if (name !== 'AI_NoObjectGeneratedError' || output === undefined) return unwrapped(error)
  const said = typeof text === 'string' ? text : ''
  try {
    if (!isSpec(output)) await outputOf(output as OutputSchema<unknown>, said, model, String(finishReason))
  } catch (wrong) {
    return wrong
  }
  return new ManyworldsError(
    'MODEL_OUTPUT_INVALID',
    `model '${model}': ${String(message)} It said: ${said.slice(0, 200)}`,
  )
}

/** The SDK wraps what a model has thrown; what happened is inside. */
function unwrapped(error: unknown): unknown {
  for (let inner = error, depth = 0; depth < 5 && typeof inner === 'object' && inner !== null; depth++) {
    if (ManyworldsError.is(inner)) return inner
    const { cause, lastError } = inner as { cause?: unknown; lastError?: unknown }
    inner = lastError ?? cause
  }
  return error
}

async function answerOf(
  options: Options,
  acting: ActingModel,
  { text, finishReason, steps, ...generation }: Generation,
  spending: Spending,
  ctx: Context,
): Promise<unknown> {
  // It wanted to go on: a limit has ended it, or a condition of the user's.
  if (finishReason === 'tool-calls' && spending.reached !== undefined)
    return cut(options, spending.reached, lastText(steps, text), ctx)
  if (finishReason === 'length') return cut(options, 'context', text, ctx)
  const { output } = options
  const answer = output === undefined ? lastText(steps, text) : await structured(output, acting, text, generation)
  endEpisode(ctx, { ending: { kind: 'terminated' }, finalObservation: answer, reward: null, success: null })
  return answer
}

const lastText = (steps: Generation['steps'], text: string) =>
  text !== '' ? text : (steps.findLast((step) => step.text !== '')?.text ?? '')

/** An episode that was cut short has the text it came to. Of structured output, half is none. */
function cut(options: Options, by: Truncation, text: string, ctx: Context): unknown {
  if (options.output !== undefined)
    throw new ManyworldsError(
      'MODEL_OUTPUT_INVALID',
      `agent '${options.name}' was cut short (${LIMITS[by]}) before it gave its structured output`,
    )
  endEpisode(ctx, { ending: { kind: 'truncated', by }, finalObservation: text, reward: null, success: null })
  return text
}

const LIMITS: Readonly<Record<Truncation, string>> = {
  maxSteps: 'maxTurns',
  budget: 'maxTokens or maxCostUsd',
  context: 'its model stopped at its limit of tokens',
  timeout: 'timeoutMs',
  environment: 'its environment',
}

function structured(
  output: NonNullable<Options['output']>,
  { model }: ActingModel,
  text: string,
  generation: Pick<Generation, 'output'>,
): unknown {
  return isSpec(output) ? generation.output : outputOf(output as OutputSchema<unknown>, text, model, 'stop')
}

const isSpec = (output: object): boolean => 'parseCompleteOutput' in output

async function outputSpec(ai: AiSdk, output: NonNullable<Options['output']>): Promise<object> {
  if (isSpec(output)) return output
  return ai.Output.object({ schema: ai.jsonSchema(await jsonSchemaOf(output as OutputSchema<unknown>)) })
}

/** Those that the task allows, if it says so. */
async function toolsFor({ tools }: Options, input: unknown, ctx: Context<LlmAgentParams>): Promise<LlmTools> {
  const all = typeof tools === 'function' ? await tools(input, ctx) : (tools ?? {})
  const allowed = ctx.task.tools
  return allowed ? Object.fromEntries(Object.entries(all).filter(([name]) => allowed.includes(name))) : all
}

function promptOf({ prompt, name }: Options, input: unknown): object {
  const made = prompt ? prompt(input) : questionIn(input)
  if (typeof made === 'string') return { prompt: made }
  if (Array.isArray(made)) return { messages: made }
  if (prompt)
    throw new ManyworldsError(
      'TASK_INVALID',
      `\`prompt\` of agent '${name}' must return a text, or a list of messages; it returned ${made === null ? 'null' : made instanceof Promise ? 'a promise' : typeof made}`,
    )
  throw new ManyworldsError(
    'TASK_INVALID',
    `agent '${name}' cannot make a prompt of its input: give it a text, an object with \`instruction\`, \`question\` or \`prompt\`, or give the agent \`prompt: (input) => …\``,
  )
}

function questionIn(input: unknown): unknown {
  if (typeof input !== 'object' || input === null) return input
  const { instruction, question, prompt, messages } = input as Record<string, unknown>
  return instruction ?? question ?? prompt ?? messages
}

const listOf = (value: unknown): readonly unknown[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value]
