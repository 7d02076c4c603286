import * as crypto from 'node:crypto'
import { serialize } from 'node:v8'
import type { AnyAgent, Context } from './agent.ts'
import { ManyworldsError, TaskError } from './errors.ts'
import { checkStreamName } from './random.ts'
import { registry } from './registry.ts'
import { noteOf, RECORD, recordStep, type StepSink } from './trajectory/record.ts'
import type { StepContent } from './trajectory/step.ts'

/** What one sub-agent came to. A failure is a value: the aggregate decides what it means. */
export type SubResult<Answer = unknown> =
  | { readonly success: true; readonly answer: Answer; readonly error?: never }
  | { readonly success: false; readonly answer?: never; readonly error: Error }

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
  const run = subAgentRunner(ctx)
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
export function subAgentRunner(ctx: Context<GroupParams>) {
  return async (agent: AnyAgent, input: unknown, index: number): Promise<unknown> => {
    const found = registry.find(agent.ref.module, agent.ref.name)
    if (!found)
      throw new ManyworldsError(
        'AGENT_NOT_FOUND',
        `sub-agent '${agent.name}' of ${agent.ref.module} is not loaded here`,
      )
    const params = ctx.params.subParams[index]
    const state = found.definition.setup && (await setUpOnce(agent, params, found.definition.setup))
    return found.definition.run(input, contextFor(agent.name, params, state, ctx))
  }
}

type Setup = NonNullable<NonNullable<ReturnType<typeof registry.find>>['definition']['setup']>

const states = new Map<string, Promise<unknown>>()
const keysOfParams = new WeakMap<object, string>()
const leaving = new AbortController()

async function setUpOnce(agent: AnyAgent, params: unknown, setup: Setup): Promise<unknown> {
  const key = `${agent.ref.module}\0${agent.ref.name}\0${keyOf(params)}`
  let state = states.get(key)
  if (!state) {
    if (states.size === 0) process.once('exit', () => leaving.abort())
    state = (async () => setup(params, { signal: leaving.signal }))()
    states.set(key, state)
    // A passing fault is not remembered.
    state.catch(() => states.delete(key))
  }
  return state
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

/** The group's context as a sub-agent sees it; steps say whose they are. */
function contextFor(name: string, params: unknown, state: unknown, ctx: Context): Context & StepSink {
  // By its name in the group: what one draws depends neither on the others nor on who is first.
  const randomStream = (stream: string) => {
    checkStreamName(stream)
    return ctx.randomStream(`${name}\0${stream}`)
  }
  let random: (() => number) | undefined
  const record = (content: StepContent) => recordStep(ctx, { agent: name, ...content })
  return {
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
    runTask: ctx.runTask,
    ask: ctx.ask,
    askStream: ctx.askStream,
    once: ctx.once,
  }
}

/** As the `error` of a response would be: with a code, and fit for a log. */
function asError(reason: unknown): TaskError {
  if (reason instanceof TaskError) return reason
  if (!(reason instanceof Error)) return new TaskError('TASK_THREW', String(reason), { cause: reason })
  const { name, message, stack } = reason
  return new TaskError('TASK_THREW', message, { cause: reason, name, ...(stack === undefined ? {} : { stack }) })
}
