import { type Agent, type Context, defineMadeAgent, POLICY } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { GradeFunction, Grader } from '../grade/grader.ts'
import type { OutputSchema } from '../models/generate.ts'
import { MODELS_USED } from '../models/models-used.ts'
import { type ActingModel, openActing } from './llm/acting-model.ts'
import { runEpisode } from './llm/llm-episode.ts'
import { lostText } from './llm/lost-text.ts'
import type { LlmTools } from './llm/recorded-tools.ts'
import type { Policy, PolicyMode, PolicyRef } from './policy.ts'

/** What travels to the workers with a model agent. Change it with `agent.withParams({ ...agent.params, model: 'large' })`. */
export interface LlmAgentParams {
  /** Its name in `models` of the run; null: its policy says. */
  readonly model: string | null
  /** The version of the policy that acts; null: the agent has none. */
  readonly policy: PolicyRef | null
  /** `'greedy'`: at temperature 0. */
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
  /** The name of one of the run's `models`. An agent whose policy is a model needs none. */
  readonly model?: string
  /** What a training makes better: a model, such as `lora()`, or texts, `textPolicy()`; both are in `manyworlds/train`. */
  readonly policy?: Policy
  /** `'greedy'`: at temperature 0. Default `'sample'`. */
  readonly mode?: PolicyMode
  /** What the model is told first. */
  readonly instructions?: string
  /** Makes the question of an input: a text, or messages of the AI SDK. Default: the input, if it is text, or its `instruction`, `question` or `prompt`. */
  readonly prompt?: (input: Input) => string | readonly object[]
  /** Tools of the AI SDK, or a function that makes them for one task. A task with `tools` gets those of them that it names. */
  readonly tools?: LlmTools | ((input: Input, ctx: Context<LlmAgentParams>) => LlmTools | Promise<LlmTools>)
  /** When to stop after calls of tools, besides the limits below: conditions of the AI SDK, such as `hasToolCall('done')`. */
  readonly stopWhen?: unknown
  /** The answer has this form: a schema of zod, a JSON schema, or an `Output` of the AI SDK. Left out: the answer is the text. */
  readonly output?: OutputSchema<Answer> | OutputSpec<Answer>
  readonly temperature?: number
  /** Tokens of one reply. */
  readonly maxOutputTokens?: number
  /** The episode is cut short after so many calls of the model. Default 20. */
  readonly maxTurns?: number
  /** The episode is cut short once its calls have taken so many tokens, in and out; or have cost so much. Default: no limit. */
  readonly maxTokens?: number
  readonly maxCostUsd?: number
  /** The episode is cut short after so many milliseconds. Default: no limit. */
  readonly timeoutMs?: number
  /** A tool that takes longer has failed. Default 60,000. */
  readonly toolTimeoutMs?: number
  /** How answers are graded, unless the task or the run says so. */
  readonly grade?: Grader | GradeFunction<NoInfer<Input>, NoInfer<Answer>>
  /** Further settings of the AI SDK's `ToolLoopAgent`: `toolChoice`, `prepareStep`, `topP`, … */
  readonly settings?: Readonly<Record<string, unknown>>
  /** The module that workers import to find this agent: `import.meta.url`. Only needed where the call site does not tell. */
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
 * Defines an agent that is a language model with tools: `ToolLoopAgent` of the AI SDK, whose calls go to one of the run's `models`. Needs
 * the package `ai`. Like `defineAgent`, it is called at the top level of a module. See docs/models.md.
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
    throw wrong(`\`model\` ${of}: its policy '${policy.name}' is the model; leave \`model\` out`)
  const { texts } = (policy ?? {}) as { readonly texts?: Readonly<Record<string, string>> }
  if (given.instructions !== undefined && texts?.instructions !== undefined)
    throw wrong(`\`instructions\` ${of}: its policy '${policy!.name}' has them; leave them out here`)
  const needsModel = policy?.model === undefined
  if (needsModel && (typeof given.model !== 'string' || given.model === ''))
    throw wrong(`\`model\` ${of} must be the name of one of the run's models, it is ${shown(given.model)}`)
  const unknown = Object.keys(given).find((key) => !Object.hasOwn(KNOWN, key))
  if (unknown !== undefined)
    throw wrong(
      `unknown key '${unknown}' ${of}; allowed: ${Object.keys(KNOWN).join(', ')}. Settings of the AI SDK go into \`settings\``,
    )
  const lost = lostText(policy, given.tools)
  if (lost !== undefined)
    throw wrong(
      `policy '${policy!.name}' ${of} has a text '${lost}', and the agent has no such tool; it has ${Object.keys(given.tools ?? {}).join(', ') || 'none'}`,
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
