import { setTimeout as sleep } from 'node:timers/promises'
import { didYouMean } from '../../did-you-mean.ts'
import { ManyworldsError } from '../../errors.ts'
import { BRANCHES, type BranchSource, openBranch } from '../../trajectory/branches.ts'
import { nextStep, recordStep } from '../../trajectory/record.ts'
import type { Message, ModelStep, PolicyVersion, StepTokens } from '../../trajectory/step.ts'
import type { Usage } from '../../trajectory/usage.ts'
import type { ModelAnswer, ModelPath } from '../protocol.ts'
import type { ModelDescription } from '../settings.ts'
import { type ChatReply, replyIn, tokensOf, usageOf } from './chat-reply.ts'
import { bodyText, type ChatRequest, mostTokens, samplingOf, wireOf } from './chat-request.ts'
import { conversationsOf } from './conversations.ts'
import { MODEL_CALLS, type ModelSource } from './transport.ts'

export interface Chatted {
  readonly reply: ChatReply
  readonly answer: ModelAnswer
  /** The text that was sent. */
  readonly sent: string
  /** The index of the step that records the call. */
  readonly step: number
  readonly tokens: StepTokens | null
}

export interface ChatOptions {
  readonly signal?: AbortSignal | undefined
  /** The role of the caller. Default: the agent. */
  readonly role?: ModelStep['role'] | undefined
  /** Treat unrecorded tool results in requests as errors: the code that runs the tools records all that it ran. */
  readonly recordsTools?: boolean
  /** Receives the usage of each call. */
  spent?(usage: Usage): void
  /** The version of the policy that the agent acts with. */
  readonly policy?: PolicyVersion | undefined
  /** Set if the model itself is that policy and is being trained. */
  readonly trained?: TrainedModel | undefined
}

/** How a model in training is called: with the task's seeds, and so that its tokens are known exactly. */
export interface TrainedModel {
  /** The seed of the next call. */
  seed(): number
  /** Whether its server accepts the token ids of earlier turns, so that they are never tokenized again. */
  readonly carries: boolean
}

/** Finds a model of the run by name. */
export async function describe(ctx: object, name: string): Promise<ModelDescription> {
  const models = await callsOf(ctx).describe()
  const found = Object.hasOwn(models, name) ? models[name] : undefined
  if (found?.kind === 'unusable') throw new ManyworldsError('MODEL_UNKNOWN', found.why)
  if (found) return found
  const names = Object.keys(models)
  const known = names.length === 0 ? 'the run has no models' : `the run has ${names.join(', ')}`
  throw new ManyworldsError(
    'MODEL_UNKNOWN',
    `unknown model '${name}'${didYouMean(name, names)}; ${known}. Add it as models: { ${JSON.stringify(name)}: { baseURL: '…', model: '…' } } to the run configuration, to models.json, or with --model ${name}=…`,
  )
}

/** Counts a call as under way, so that it is noted if its task ends without awaiting it. `signal`: the caller's. */
export async function underWay<Result>(
  ctx: object,
  model: string,
  signal: AbortSignal | undefined,
  call: () => Promise<Result>,
): Promise<Result> {
  const ended = callsOf(ctx).begin(model, signal)
  try {
    return await call()
  } finally {
    ended()
  }
}

export const callsOf = (ctx: object) => (ctx as ModelSource)[MODEL_CALLS]

/** Calls a model on a server, and records the exact request and reply as a step. */
export async function chat(
  ctx: object,
  name: string,
  description: ModelDescription,
  request: ChatRequest,
  { signal, role = 'agent', recordsTools = false, spent, policy, trained }: ChatOptions = {},
): Promise<Chatted> {
  recordResults(ctx, request.messages, recordsTools)
  const carried = trained?.carries ? conversationsOf(ctx).carried(request.messages) : undefined
  const sent = bodyText(request, carried)
  const most = mostTokens(request, carried?.ids.length)
  const ask = () => send(ctx, name, description, '/chat/completions', sent, most, signal, trained !== undefined)
  const answer = trained ? await onceLoaded(ask, signal) : await ask()
  const reply = replyIn(answer.body)
  const isConstrained = 'response_format' in request.fields || isForced(request.fields.tool_choice)
  const tokens = tokensOf(reply, description, isConstrained)
  const wire = wireOf(request, carried)
  const step = record(ctx, { name, description, role, request, wire, reply, answer, tokens, policy })
  spent?.(usageOf(reply.count, description.price, answer.cached))
  if (trained) refuseOtherModel(name, description, reply)
  if (reply.finish === 'content_filter') throw filtered(name)
  return { reply, answer, sent, step, tokens }
}

/** The filter withheld or cut the answer. Its step is recorded all the same: it was made, and may be billed. */
export const filtered = (name: string) =>
  new ManyworldsError(
    'MODEL_CONTENT_FILTER',
    `model '${name}': a content filter of the server withheld the answer or cut it; change the prompt`,
  )

/** How long a restarted server may lack a version, until the training has loaded it again. */
const RELOAD_MS = 30_000
const RETRY_MS = 500

/** Retries while the server does not know the version. */
async function onceLoaded(ask: () => Promise<ModelAnswer>, signal: AbortSignal | undefined): Promise<ModelAnswer> {
  for (const until = performance.now() + RELOAD_MS; ; )
    try {
      return await ask()
    } catch (error) {
      const isUnknown =
        ManyworldsError.is(error) && error.code === 'MODEL_INVALID_REQUEST' && error.message.includes('404')
      if (!isUnknown || signal?.aborted || performance.now() > until) throw error
      await sleep(RETRY_MS)
    }
}

/** Servers force a tool call with a grammar. */
const isForced = (choice: unknown): boolean => choice === 'required' || typeof choice === 'object'

/** A server that has lost a version may answer with another model, whose reply must not be trained on. */
function refuseOtherModel(name: string, { model }: ModelDescription, { completion }: ChatReply): void {
  if (completion.model === model) return
  const other = typeof completion.model === 'string' ? `'${completion.model}'` : 'none'
  throw new ManyworldsError(
    'MODEL_MISMATCH',
    `model '${name}': requested '${model}', but the server answered with ${other === 'none' ? 'no model name' : other}; check that the server has loaded this version`,
  )
}

/**
 * Records tool results in the request that are not recorded yet: of tools that the agent's own code runs, and of calls
 * that could not be made, because the tool is unknown or its arguments are invalid.
 */
export function recordResults(ctx: object, messages: readonly Message[], areErrors: boolean): void {
  const conversations = conversationsOf(ctx)
  for (const { role, callId, content } of messages) {
    if (role !== 'tool' || callId === undefined) continue
    const asked = conversations.asked(callId)
    if (asked === undefined || !conversations.answered(callId)) continue
    const position = asked.message.calls!.findIndex(({ id }) => id === callId)
    const { name, raw } = asked.message.calls![position]!
    const call = { step: asked.step, position, id: callId }
    const end = areErrors ? { error: content } : { result: content }
    const branch = branchField(conversations.branchOfStep(asked.step))
    void recordStep(ctx, { kind: 'tool', call, name, arguments: { raw }, ...end, ms: 0, ...branch })
  }
}

/** The agent's main branch is omitted. */
export const branchField = (branch: number | undefined): { readonly branch?: number } =>
  branch === undefined ? {} : { branch }

export const send = (
  ctx: object,
  model: string,
  description: ModelDescription,
  path: ModelPath,
  body: string,
  tokens: number,
  signal: AbortSignal | undefined,
  mayLoad = false,
): Promise<ModelAnswer> =>
  callsOf(ctx).call(description, { model, path, body, tokens, ...(mayLoad && { mayLoad }) }, signal)

interface Recorded {
  readonly name: string
  readonly description: ModelDescription
  readonly role: ModelStep['role']
  readonly request: ChatRequest
  /** Default: the request without messages and tools. */
  readonly wire?: string
  readonly reply: ChatReply
  readonly answer: Omit<ModelAnswer, 'body'> & { readonly body: string }
  readonly tokens: StepTokens | null
  readonly policy?: PolicyVersion | undefined
}

/** Records a model call as a step, and returns its index. */
export function record(ctx: object, recorded: Recorded): number {
  const { description, role, request, wire, reply, answer, tokens: read, policy = null } = recorded
  const conversations = conversationsOf(ctx)
  const { message, finish, count, completion } = reply
  const step = nextStep(ctx)
  const tokens = read && conversations.placeTokens(read)
  const branch = conversations.branchOf(request.messages, tokens, (from, after) =>
    openBranch(ctx, { why: 'drift', from: from ?? (ctx as BranchSource)[BRANCHES].number, step: after }),
  )
  void recordStep(ctx, {
    kind: 'model',
    role,
    policy,
    ...branchField(branch),
    server: serverOf(completion, description),
    request: {
      ...conversations.place(request.messages),
      tools: request.tools.length === 0 ? '' : JSON.stringify(request.tools),
      wire: wire ?? wireOf(request),
    },
    reply: { ...message, wire: answer.body },
    finish,
    cached: answer.cached,
    tokens,
    sampling: samplingOf(request),
    usage: usageOf(count, description.price, answer.cached),
    ms: Math.round(answer.ms * 1000) / 1000,
    retries: answer.retries,
  })
  conversations.remember(step, request.messages, message, read, branch)
  return step
}

function serverOf({ model, id }: ChatReply['completion'], description: ModelDescription): ModelStep['server'] {
  return {
    model: typeof model === 'string' ? model : description.model,
    ...(typeof id === 'string' && { id }),
  }
}

/** A prompt and an optional system message as messages. */
export const asMessages = (prompt: string | readonly Message[], system: string | undefined): Message[] => [
  ...(system === undefined ? [] : [{ role: 'system' as const, content: system }]),
  ...(typeof prompt === 'string' ? [{ role: 'user' as const, content: prompt }] : prompt),
]
