import * as crypto from 'node:crypto'
import { serialize } from 'node:v8'
import type { AnyAgent, Context } from './agent.ts'
import { ManyworldsError, TaskError } from './errors.ts'
import { callsOf } from './models/worker/chat.ts'
import { complete } from './models/worker/complete.ts'
import { generate } from './models/worker/generate.ts'
import { languageModel } from './models/worker/language-model.ts'
import { MODEL_CALLS, type ModelSource } from './models/worker/transport.ts'
import { checkStreamName } from './random.ts'
import { registry } from './registry.ts'
import { BRANCHES, type BranchPlace, type BranchSource } from './trajectory/branches.ts'
import { EPISODE, type Episode, type EpisodeSink } from './trajectory/episode.ts'
import { nextStep, noteOf, RECORD, recordStep, STEPS, type StepSink } from './trajectory/record.ts'
import type { StepContent } from './trajectory/step.ts'
import { askAside, SIDE, type SideAsker } from './worker/side-ask.ts'

/** What one sub-agent came to. A failure is a value: the aggregate decides what it means. */
export type SubResult<Answer = unknown> =
  | { readonly success: true; readonly answer: Answer; readonly error?: never }
  | { readonly success: false; readonly answer?: never; readonly error: Error }

/** What travels to a worker of an agent that is made of others. */
export interface GroupParams {
  /** The driver's params of each sub-agent: data travels, whatever the worker's own evaluation came to. */
  readonly subParams: readonly unknown[]
}

/** Runs the sub-agents of a group at once in this worker, each on an input of its own, as if they were spread. */
export async function runHere(
  agents: readonly AnyAgent[],
  input: unknown,
  ctx: Context<GroupParams>,
): Promise<SubResult[]> {
  const inputs = agents.map(() => structuredClone(input))
  const run = subAgentRunner(agents, 'parallel', ctx)
  const ends = await Promise.allSettled(agents.map((agent, index) => run(agent, inputs[index], index)))
  return ends.map((end) =>
    end.status === 'fulfilled' ? { success: true, answer: end.value } : { success: false, error: asError(end.reason) },
  )
}

/** Runs them as sub-tasks, on any worker. */
export async function runSpread(
  agents: readonly AnyAgent[],
  input: unknown,
  ctx: Context<GroupParams>,
): Promise<SubResult[]> {
  const tasks = agents.map((agent, index) =>
    agent.withParams(ctx.params.subParams[index]).task(input, { id: agent.name }),
  )
  const responses = [...(await ctx.runTask(tasks)).values()]
  return responses.map((response) =>
    response.success ? { success: true, answer: response.answer } : { success: false, error: response.error },
  )
}

/** Runs single sub-agents in this worker: their own code, params and set-up, the group's context. */
export function subAgentRunner(agents: readonly AnyAgent[], why: 'parallel' | 'serial', ctx: Context<GroupParams>) {
  const outer = (ctx as unknown as BranchSource)[BRANCHES]
  const { places, taken } = branchesIn(agents)
  return async (agent: AnyAgent, input: unknown, index: number): Promise<unknown> => {
    const found = registry.find(agent.ref.module, agent.ref.name)
    if (!found)
      throw new ManyworldsError(
        'AGENT_NOT_FOUND',
        `sub-agent '${agent.name}' of ${agent.ref.module} is not loaded here`,
      )
    const params = ctx.params.subParams[index]
    const state = found.definition.setup && (await setUpOnce(agent, params, found.definition.setup, ctx))
    const number = outer.number + places[index]!
    outer.open({ number, agent: agent.name, from: outer.number, step: null, why })
    const branch: BranchPlace = {
      number,
      open: (opening) => outer.open({ agent: agent.name, from: number, owner: number, ...opening, taken }),
    }
    return found.definition.run(input, contextFor(agent.name, params, state, ctx, branch))
  }
}

/** On the function that runs a group in one worker: its sub-agents. By a symbol that two copies of this package share. */
export const MEMBERS: unique symbol = Symbol.for('manyworlds.members')

/** Where the branches of sub-agents stand after that of their group, and how many there are with it and those inside them. */
function branchesIn(agents: readonly AnyAgent[]): { readonly places: readonly number[]; readonly taken: number } {
  const places: number[] = []
  let taken = 1
  for (const { ref } of agents) {
    places.push(taken)
    const run = registry.find(ref.module, ref.name)?.definition.run as { [MEMBERS]?: readonly AnyAgent[] } | undefined
    taken += run?.[MEMBERS] ? branchesIn(run[MEMBERS]).taken : 1
  }
  return { places, taken }
}

type Setup = NonNullable<NonNullable<ReturnType<typeof registry.find>>['definition']['setup']>

/** A setup that was begun, and for which task: it has that one's blobs. */
interface Begun {
  readonly by: Context
  readonly state: Promise<unknown>
}

const states = new Map<string, Begun>()
const keysOfParams = new WeakMap<object, string>()
const leaving = new AbortController()

async function setUpOnce(agent: AnyAgent, params: unknown, setup: Setup, ctx: Context): Promise<unknown> {
  const key = `${agent.ref.module}\0${agent.ref.name}\0${keyOf(params)}`
  for (;;) {
    const begun = states.get(key) ?? beginSetup(key, params, setup, ctx)
    try {
      return await begun.state
    } catch (error) {
      // The task for which it was begun was given up, perhaps in the middle of it.
      if (begun.by === ctx || !begun.by.signal.aborted) throw error
    }
  }
}

function beginSetup(key: string, params: unknown, setup: Setup, by: Context): Begun {
  if (states.size === 0) process.once('exit', () => leaving.abort())
  const begun: Begun = { by, state: (async () => setup(params, { signal: leaving.signal, blob: by.blob }))() }
  states.set(key, begun)
  // A passing fault is not remembered.
  begun.state.catch(() => states.delete(key))
  return begun
}

/** By content, whatever it is; computed once for the params of a group, which come with all of its tasks. */
function keyOf(params: unknown): string {
  if (typeof params !== 'object' || params === null) return crypto.hash('sha256', serialize(params))
  let key = keysOfParams.get(params)
  if (key === undefined) {
    key = crypto.hash('sha256', serialize(params))
    keysOfParams.set(params, key)
  }
  return key
}

/** The group's context as a sub-agent sees it; steps say whose they are, and belong to a branch of its own. */
function contextFor(
  name: string,
  params: unknown,
  state: unknown,
  ctx: Context,
  branch: BranchPlace,
): Context & StepSink & EpisodeSink & BranchSource & SideAsker & ModelSource {
  // By its name in the group: what one draws depends neither on the others nor on who is first.
  const randomStream = (stream: string) => {
    checkStreamName(stream)
    return ctx.randomStream(`${name}\0${stream}`)
  }
  let random: (() => number) | undefined
  const record = (content: StepContent) => recordStep(ctx, { agent: name, branch: branch.number, ...content })
  const inner: ReturnType<typeof contextFor> = {
    params,
    state,
    attempt: ctx.attempt,
    idempotencyKey: `${ctx.idempotencyKey}/${name}`,
    get signal() {
      return ctx.signal
    },
    get task() {
      return ctx.task
    },
    get previous() {
      return ctx.previous
    },
    get results() {
      return ctx.results
    },
    log: ctx.log,
    random: () => {
      random ??= randomStream('')
      return random()
    },
    randomStream,
    step: (note) => record(noteOf(note)),
    [RECORD]: record,
    get [STEPS]() {
      return nextStep(ctx)
    },
    [BRANCHES]: branch,
    // It is not the end of the task's own episode.
    [EPISODE]: (episode: Episode) => void record({ kind: 'note', ends: episode }),
    runTask: ctx.runTask,
    ask: ctx.ask,
    askStream: ctx.askStream,
    limit: ctx.limit,
    blob: ctx.blob,
    once: ctx.once,
    [SIDE]: (service, question) => askAside(ctx, service, question),
    [MODEL_CALLS]: callsOf(ctx),
    model: (name) => languageModel(inner, name),
    generate: (options) => generate(inner, options),
    complete: (options) => complete(inner, options),
  }
  return inner
}

/** As the `error` of a response would be: with a code, and fit for a log. */
function asError(reason: unknown): TaskError {
  if (TaskError.is(reason)) return reason
  if (!(reason instanceof Error)) return new TaskError('TASK_THREW', String(reason), { cause: reason })
  const { name, message, stack } = reason
  return new TaskError('TASK_THREW', message, { cause: reason, name, ...(stack === undefined ? {} : { stack }) })
}
