import { type Agent, type Context, defineMadeAgent, POLICY } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { GradeFunction, Grader } from '../grade/grader.ts'
import type { OutputSchema } from '../models/generate.ts'
import { MODELS_USED } from '../models/models-used.ts'
import { type ActingModel, openActing } from './llm/acting-model.ts'
import { runEpisode } from './llm/llm-episode.ts'
import type { LlmTools } from './llm/recorded-tools.ts'
import { textWithoutTool } from './llm/text-without-tool.ts'
import type { Policy, PolicyMode, PolicyRef } from './policy.ts'

/** The params of a model agent, which are sent to workers. Change them with `agent.withParams({ ...agent.params, model: 'large' })`. */
export interface LlmAgentParams {
  /** The name of the model in `models` of the run. Null: the policy names it. */
  readonly model: string | null
  /** The version of the policy that acts. Null: the agent has no policy. */
  readonly policy: PolicyRef | null
  /** `'greedy'`: temperature 0. */
  readonly mode: PolicyMode
  readonly instructions: string | null
  readonly temperature: number | null
  readonly maxOutputTokens: number | null
  readonly maxTurns: number
  readonly maxTokens: number | null
  readonly maxCostUsd: number | null
  readonly timeoutMs: number | null
  readonly toolTimeoutMs: number
}

export interface LlmAgentOptions<Input, Answer, Name extends string> {
  /** Unique in its module. */
  readonly name: Name
  /** The name of one of the run's `models`. Leave it out if the policy is a model. */
  readonly model?: string
  /** What a training improves: a model, such as `lora()`, or texts, `textPolicy()`; both are in `manyworlds/train`. */
  readonly policy?: Policy
  /** `'greedy'`: temperature 0. Default `'sample'`. */
  readonly mode?: PolicyMode
  /** The system prompt of the model. */
  readonly instructions?: string
  /** Makes the prompt from an input: a text, or messages of the AI SDK. Default: the input if it is a text, or its `instruction`, `question` or `prompt`. */
  readonly prompt?: (input: Input) => string | readonly object[]
  /** Tools of the AI SDK, or a function that makes them for one task. A task with `tools` gets only the tools that it names. */
  readonly tools?: LlmTools | ((input: Input, ctx: Context<LlmAgentParams>) => LlmTools | Promise<LlmTools>)
  /** When to stop after tool calls, besides the limits below: conditions of the AI SDK, such as `hasToolCall('done')`. */
  readonly stopWhen?: unknown
  /** The schema of the answer: a zod schema, a JSON schema, or an `Output` of the AI SDK. Default: the answer is the text. */
  readonly output?: OutputSchema<Answer> | OutputSpec<Answer>
  readonly temperature?: number
  /** The largest number of tokens of one reply. */
  readonly maxOutputTokens?: number
  /** Truncates the episode after this many model calls. Default 20. */
  readonly maxTurns?: number
  /** Truncates the episode when its calls have used this many tokens (input and output), or cost this much. Default: no limit. */
  readonly maxTokens?: number
  readonly maxCostUsd?: number
  /** Truncates the episode after this many milliseconds. Default: no limit. */
  readonly timeoutMs?: number
  /** A tool call that takes longer fails. Default 60,000. */
  readonly toolTimeoutMs?: number
  /** How answers are graded, unless the task or the run defines it. */
  readonly grade?: Grader | GradeFunction<NoInfer<Input>, NoInfer<Answer>>
  /** Further settings of the AI SDK's `ToolLoopAgent`: `toolChoice`, `prepareStep`, `topP`, … */
  readonly settings?: Readonly<Record<string, unknown>>
  /** The module that workers import to find this agent: `import.meta.url`. Needed only if the call site cannot be determined. */
  readonly module?: string | URL
}

/** An `Output` of the AI SDK, such as `Output.object({ schema })`. */
export interface OutputSpec<Answer> {
  // biome-ignore lint/suspicious/noExplicitAny: what the SDK passes to it
  parseCompleteOutput(options: any, context: any): PromiseLike<Answer>
}

const DEFAULT_TURNS = 20
const DEFAULT_TOOL_MS = 60_000

/**
 * Defines an agent that is a language model with tools: `ToolLoopAgent` of the AI SDK, which calls one of the run's
 * `models`. Needs the package `ai`. Like `defineAgent`, call it at the top level of a module. See docs/models.md.
 *
 * @example
 * const solver = llmAgent({ name: 'solver', model: 'small', instructions: 'Answer with one number.', grade: numeric() })
 * await Runners.runTask(solver.task('What is 6 x 7?', { groundTruth: 42 }), { models: { small: { baseURL, model } } })
 */
export function llmAgent<Input = string, const Name extends string = string>(
  options: LlmAgentOptions<Input, string, Name> & { readonly output?: undefined },
): Agent<Input, string, LlmAgentParams, Name>
export function llmAgent<Input = string, Answer = unknown, const Name extends string = string>(
  options: LlmAgentOptions<Input, Answer, Name> & { readonly output: object },
): Agent<Input, Answer, LlmAgentParams, Name>
export function llmAgent<Input, Answer, Name extends string>(
  options: LlmAgentOptions<Input, Answer, Name>,
): Agent<Input, Answer, LlmAgentParams, Name> {
  check(options)
  const { name, grade, module, tools, prompt, stopWhen, policy } = options
  const run = (input: Input, ctx: Context<LlmAgentParams, ActingModel>): Promise<Answer> =>
    runEpisode(options as never, input, ctx) as Promise<Answer>
  Object.assign(run, { [MODELS_USED]: ({ model }: LlmAgentParams) => [policy?.model ?? model] })
  return defineMadeAgent<Input, Promise<Answer>, LlmAgentParams, ActingModel, Name>(
    {
      ...{ name, params: paramsOf(options), run },
      setup: (params, host) => openActing(name, policy, params, host),
      ...(policy && { [POLICY]: policy }),
      ...(grade && { grade: grade as Grader }),
      ...(module && { module }),
    },
    [tools, prompt, stopWhen, policy?.open].filter((one) => typeof one === 'function'),
  ) as Agent<Input, Answer, LlmAgentParams, Name>
}

function paramsOf<Input, Answer, Name extends string>(options: LlmAgentOptions<Input, Answer, Name>): LlmAgentParams {
  const { model, instructions, temperature, maxOutputTokens, maxTurns, maxTokens, maxCostUsd, timeoutMs } = options
  const { policy, mode = 'sample' } = options
  return {
    model: model ?? null,
    policy: policy === undefined ? null : { policy: policy.name, version: 0, digest: null, at: null },
    mode,
    instructions: instructions ?? null,
    temperature: temperature ?? null,
    maxOutputTokens: maxOutputTokens ?? null,
    maxTurns: maxTurns ?? DEFAULT_TURNS,
    maxTokens: maxTokens ?? null,
    maxCostUsd: maxCostUsd ?? null,
    timeoutMs: timeoutMs ?? null,
    toolTimeoutMs: options.toolTimeoutMs ?? DEFAULT_TOOL_MS,
  }
}

const KNOWN: Readonly<Record<keyof LlmAgentOptions<unknown, unknown, string>, true>> = {
  ...{ name: true, model: true, instructions: true, prompt: true, tools: true, stopWhen: true, output: true },
  ...{ temperature: true, maxOutputTokens: true, maxTurns: true, maxTokens: true, maxCostUsd: true, timeoutMs: true },
  ...{ toolTimeoutMs: true, grade: true, settings: true, module: true, policy: true, mode: true },
}

const POSITIVE = ['maxOutputTokens', 'maxTurns', 'maxTokens', 'maxCostUsd', 'timeoutMs', 'toolTimeoutMs'] as const

function check(options: unknown): void {
  const wrong = (what: string) => new ManyworldsError('AGENT_INVALID', `llmAgent: ${what}`)
  if (typeof options !== 'object' || options === null)
    throw wrong("give one object: llmAgent({ name: '…', model: '…', instructions: '…' })")
  const given = options as Partial<LlmAgentOptions<unknown, unknown, string>>
  if (typeof given.name !== 'string' || given.name === '') throw wrong('`name` must be a non-empty string')
  const of = `of agent '${given.name}'`
  const { policy, mode = 'sample' } = given
  if (policy !== undefined && !(typeof policy?.open === 'function' && typeof policy.name === 'string'))
    throw wrong(`\`policy\` ${of} must be a policy, such as lora() or textPolicy() of manyworlds/train`)
  if (mode !== 'sample' && mode !== 'greedy')
    throw wrong(`\`mode\` ${of} must be 'sample' or 'greedy', it is ${shown(mode)}`)
  if (policy?.model !== undefined && given.model !== undefined)
    throw wrong(`\`model\` ${of} conflicts with its policy '${policy.name}', which is the model; leave \`model\` out`)
  const { texts } = (policy ?? {}) as { readonly texts?: Readonly<Record<string, string>> }
  if (given.instructions !== undefined && texts?.instructions !== undefined)
    throw wrong(`\`instructions\` ${of} conflict with those of its policy '${policy!.name}'; leave them out here`)
  const needsModel = policy?.model === undefined
  if (needsModel && (typeof given.model !== 'string' || given.model === ''))
    throw wrong(`\`model\` ${of} must be the name of one of the run's models, it is ${shown(given.model)}`)
  const unknown = Object.keys(given).find((key) => !Object.hasOwn(KNOWN, key))
  if (unknown !== undefined)
    throw wrong(
      `unknown key '${unknown}' ${of}; allowed: ${Object.keys(KNOWN).join(', ')}. Settings of the AI SDK go into \`settings\``,
    )
  if (given.output !== undefined && (given.output === null || !['object', 'function'].includes(typeof given.output)))
    throw wrong(`\`output\` ${of} must be a zod schema, a JSON schema or an Output of the AI SDK`)
  const lost = textWithoutTool(policy, given.tools)
  if (lost !== undefined)
    throw wrong(
      `policy '${policy!.name}' ${of} has a text '${lost}', but the agent has no such tool; its tools are ${Object.keys(given.tools ?? {}).join(', ') || 'none'}`,
    )
  if (given.instructions !== undefined && typeof given.instructions !== 'string')
    throw wrong(`\`instructions\` ${of} must be a text`)
  for (const key of POSITIVE) {
    const value = given[key]
    if (value !== undefined && !(typeof value === 'number' && value > 0))
      throw wrong(`\`${key}\` ${of} must be a number above 0, it is ${shown(value)}`)
  }
}

const shown = (value: unknown) =>
  typeof value === 'string'
    ? `'${value}'`
    : typeof value === 'object'
      ? 'an object; name it in `models` of the run'
      : String(value)
