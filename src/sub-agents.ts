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

/** The result of one sub-agent. A failure is a value: the aggregate decides what it means. */
export type SubResult<Answer = unknown> =
  | { readonly success: true; readonly answer: Answer; readonly error?: never }
  | { readonly success: false; readonly answer?: never; readonly error: Error }

/** The params of an agent that is made of others, as they are sent to workers. */
export interface GroupParams {
  /** The driver's params of each sub-agent. A worker uses these, not those of its own evaluation of the module. */
  readonly subParams: readonly unknown[]
}

/** Runs the sub-agents of a group at once in this worker, each with its own copy of the input, as if they were spread. */
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

/** Runs single sub-agents in this worker, with their own code, params and setup, and the group's context. */
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

/** The key of the sub-agents on the function that runs a group in one worker. Two copies of this package share this symbol. */
export const MEMBERS: unique symbol = Symbol.for('manyworlds.members')

/**
 * Numbers the branches of a group, relative to the group's own, which is 0: its sub-agents, and the groups inside them. `places`:
 * the numbers of the sub-agents. `taken`: how many numbers are used in all.
 */
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

/** A setup that has begun. `by`: the task that it was begun for, and whose blobs it uses. */
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
      // If the setup's own task was cancelled, perhaps during the setup, try again for this task.
      if (begun.by === ctx || !begun.by.signal.aborted) throw error
    }
  }
}

function beginSetup(key: string, params: unknown, setup: Setup, by: Context): Begun {
  if (states.size === 0) process.once('exit', () => leaving.abort())
  const begun: Begun = { by, state: (async () => setup(params, { signal: leaving.signal, blob: by.blob }))() }
  states.set(key, begun)
  // Forget a failed setup: the next task tries again.
  begun.state.catch(() => states.delete(key))
  return begun
}

/** A hash of the content; computed once for the params of a group, which all of its tasks share. */
function keyOf(params: unknown): string {
  if (typeof params !== 'object' || params === null) return crypto.hash('sha256', serialize(params))
  let key = keysOfParams.get(params)
  if (key === undefined) {
    key = crypto.hash('sha256', serialize(params))
    keysOfParams.set(params, key)
  }
  return key
}

/** The group's context as a sub-agent sees it: its steps have its name, and are in its own branch. */
function contextFor(
  name: string,
  params: unknown,
  state: unknown,
  ctx: Context,
  branch: BranchPlace,
): Context & StepSink & EpisodeSink & BranchSource & SideAsker & ModelSource {
  // Named after the sub-agent, so that its numbers depend neither on the others nor on their order.
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
    // The end of a sub-agent's episode is not the end of the task's own.
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

/** As a TaskError, like the `error` of a response. */
function asError(reason: unknown): TaskError {
  if (TaskError.is(reason)) return reason
  if (!(reason instanceof Error)) return new TaskError('TASK_THREW', String(reason), { cause: reason })
  const { name, message, stack } = reason
  return new TaskError('TASK_THREW', message, { cause: reason, name, ...(stack === undefined ? {} : { stack }) })
}
