import type { Context } from '../../agent.ts'
import { ManyworldsError } from '../../errors.ts'
import type { OutputSchema } from '../../models/generate.ts'
import { languageModel } from '../../models/worker/language-model.ts'
import { outputOf, sentSchemaOf } from '../../models/worker/output.ts'
import { endEpisode, type Truncation } from '../../trajectory/episode.ts'
import type { LlmAgentOptions, LlmAgentParams } from '../llm-agent.ts'
import { type ActingModel, callOptions, describedTools, instructionsOf, temperatureOf } from './acting-model.ts'
import { type AiSdk, type Generation, loadAi } from './load-ai.ts'
import { type LlmTools, recordedTools } from './recorded-tools.ts'
import { Spending } from './spending.ts'

type Options = LlmAgentOptions<unknown, unknown, string>

/** Runs one episode: `ToolLoopAgent` has the loop; its model and tools are ours. */
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
    params.timeoutMs === null
      ? undefined
      : setTimeout(() => tooLong.abort(new EpisodeTimeout('timeout')), params.timeoutMs)
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
    // The agent's own timeout ended the episode. What it has reached is graded.
    if (!tooLong.signal.aborted || ctx.signal.aborted) throw await translateError(error, options, acting)
    return truncate(options, 'timeout', texts.at(-1) ?? '', ctx)
  } finally {
    clearTimeout(timer)
  }
}

class EpisodeTimeout extends Error {}

/** The SDK passes the signal on. A call that ignores the signal is not awaited. */
async function raced<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const over = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  over.catch(() => {})
  work.catch(() => {})
  return Promise.race([work, over])
}

/** Translates errors of the SDK about the model's reply into our own errors. */
async function translateError(error: unknown, { output }: Options, { model }: ActingModel): Promise<unknown> {
  const { name, text, finishReason, message } = error as Record<string, unknown>
  if (name === 'AI_NoOutputGeneratedError')
    return new ManyworldsError(
      'MODEL_OUTPUT_INVALID',
      `the episode of model '${model}' ended without a structured output`,
    )
  if (name !== 'AI_NoObjectGeneratedError' || output === undefined) return unwrapError(error)
  const said = typeof text === 'string' ? text : ''
  try {
    if (!isSpec(output)) await outputOf(output as OutputSchema<unknown>, said, model, String(finishReason))
  } catch (wrong) {
    return wrong
  }
  return new ManyworldsError(
    'MODEL_OUTPUT_INVALID',
    `model '${model}': ${String(message)} The reply was: ${said.slice(0, 200)}`,
  )
}

/** The SDK wraps errors of a model. Returns our error inside, if there is one. */
function unwrapError(error: unknown): unknown {
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
  generation: Generation,
  spending: Spending,
  ctx: Context,
): Promise<unknown> {
  const { text, finishReason, steps } = generation
  // The model wanted to call tools again: a limit, or a condition of the user, ended the episode.
  if (finishReason === 'tool-calls' && spending.reached !== undefined)
    return truncate(options, spending.reached, lastText(steps, text), ctx)
  if (finishReason === 'length') return truncate(options, 'context', text, ctx)
  const { output } = options
  const answer = output === undefined ? lastText(steps, text) : await structured(output, acting, generation)
  endEpisode(ctx, { ending: { kind: 'terminated' }, finalObservation: answer, reward: null, success: null })
  return answer
}

const lastText = (steps: Generation['steps'], text: string) =>
  text !== '' ? text : (steps.findLast((step) => step.text !== '')?.text ?? '')

/** A truncated episode returns its last text. Incomplete structured output is an error. */
function truncate(options: Options, by: Truncation, text: string, ctx: Context): unknown {
  if (options.output !== undefined)
    throw new ManyworldsError(
      'MODEL_OUTPUT_INVALID',
      `the episode of agent '${options.name}' was truncated (${LIMITS[by]}) before it produced its structured output`,
    )
  endEpisode(ctx, { ending: { kind: 'truncated', by }, finalObservation: text, reward: null, success: null })
  return text
}

const LIMITS: Readonly<Record<Truncation, string>> = {
  maxSteps: 'maxTurns',
  budget: 'maxTokens or maxCostUsd',
  context: 'the model reached its token limit',
  timeout: 'timeoutMs',
  environment: 'its environment',
}

function structured(output: NonNullable<Options['output']>, { model }: ActingModel, generation: Generation): unknown {
  // `output` is a getter of the SDK's class: a copy of the result would not have it.
  return isSpec(output) ? generation.output : outputOf(output as OutputSchema<unknown>, generation.text, model, 'stop')
}

const isSpec = (output: object): boolean => 'parseCompleteOutput' in output

async function outputSpec(ai: AiSdk, output: NonNullable<Options['output']>): Promise<object> {
  if (isSpec(output)) return output
  return ai.Output.object({ schema: ai.jsonSchema(await sentSchemaOf(output as OutputSchema<unknown>)) })
}

/** Returns the tools, limited to those that the task allows. */
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
      `\`prompt\` of agent '${name}' must return a text or a list of messages; it returned ${made === null ? 'null' : made instanceof Promise ? 'a promise' : typeof made}`,
    )
  throw new ManyworldsError(
    'TASK_INVALID',
    `agent '${name}' cannot make a prompt from its input: give a text or an object with \`instruction\`, \`question\` or \`prompt\`, or define \`prompt: (input) => …\` in the agent`,
  )
}

function questionIn(input: unknown): unknown {
  if (typeof input !== 'object' || input === null) return input
  const { instruction, question, prompt, messages } = input as Record<string, unknown>
  return instruction ?? question ?? prompt ?? messages
}

const listOf = (value: unknown): readonly unknown[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value]
