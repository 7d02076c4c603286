import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineGrader, ParallelizableAgent } from 'manyworlds'
import {
  defineEnvironment,
  fixedPolicy,
  type OpenPolicy,
  type Policy,
  type PolicyRef,
  randomPolicy,
  stepAgent,
} from 'manyworlds/agents'

// ---- a walk on a line, until one end of it

const walk = defineEnvironment({
  name: 'walk',
  reset: ({ input }: { input: { width: number } }) => ({
    state: { at: 0, width: input.width },
    observation: { at: 0 },
    candidates: ['left', 'right'],
  }),
  step(state, action, ctx) {
    // The wind has its chances, and the walker has others.
    state.at += (action === 'left' ? -1 : 1) * (ctx.random() < 0.1 ? 0 : 1)
    const done = Math.abs(state.at) === state.width
    const reward = done && state.at > 0 ? 1 : 0
    return { observation: { at: state.at }, reward, done, success: state.at > 0, candidates: ['left', 'right'] }
  },
})

export const walker = stepAgent({ name: 'walker', environment: walk, policy: randomPolicy(), maxSteps: 200 })
export const rightwards = stepAgent({
  name: 'rightwards',
  environment: walk,
  policy: fixedPolicy(({ at }: { at: number }) => (at < 0 ? 'left' : 'right')),
  maxSteps: 200,
})
export const pair = new ParallelizableAgent({ name: 'pair', agents: [walker, rightwards] })

// ---- an environment that does as it is told, and writes down its resets and closes

export interface Script {
  readonly ledger: string
  /** Done after so many steps; left out: never. */
  readonly length?: number
  /** It answers after so many milliseconds; left out: at once. */
  readonly ms?: number
  readonly reset?: 'throw' | 'hang' | number
  /** At its second step. One that hangs makes the file `${ledger}.hangs`. */
  readonly step?: 'throw' | 'hang' | 'wait for the signal' | 'block'
  readonly close?: 'throw' | 'hang'
  /** What its second step returns, over what it would. */
  readonly returns?: Record<string, unknown>
}

const scripted = defineEnvironment({
  name: 'scripted',
  reset({ id, input }: { id: string; input: Script }) {
    appendFileSync(input.ledger, `reset ${id}\n`)
    if (input.reset === 'throw') throw new RangeError('no world today')
    const start = { state: { ...input, id, at: 0 }, observation: { at: 0 } }
    if (input.reset === undefined) return input.ms === undefined ? start : sleep(input.ms, start)
    return input.reset === 'hang' ? new Promise<never>(() => {}) : sleep(input.reset, start)
  },
  step(state, action: string, ctx) {
    state.at++
    if (state.at === 2) {
      if (state.step === 'throw') throw new RangeError('the world is broken')
      if (state.step === 'hang') {
        appendFileSync(`${state.ledger}.hangs`, '')
        return new Promise<never>(() => {})
      }
      if (state.step === 'wait for the signal') return whenAborted(ctx.signal, state.ledger)
      if (state.step === 'block') for (;;);
    }
    const result = { observation: { at: state.at, action }, reward: 0.5, done: state.at === state.length }
    const returned = state.at === 2 ? { ...result, ...state.returns } : result
    return state.ms === undefined ? returned : sleep(state.ms, returned)
  },
  close(state) {
    appendFileSync(state.ledger, `close ${state.id} at ${state.at}\n`)
    if (state.close === 'throw') throw new Error('it cannot be closed')
    if (state.close === 'hang') return new Promise(() => {})
    return undefined
  },
})

async function whenAborted(signal: AbortSignal, ledger: string): Promise<never> {
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
  appendFileSync(ledger, `aborted: ${(signal.reason as Error).name}\n`)
  throw signal.reason
}

export const puppet = stepAgent({ name: 'puppet', environment: scripted, act: ({ step }) => `do ${step}`, maxSteps: 5 })
/** Long enough for a first step on a busy machine. */
const HASTY_MS = 1500
export const hasty = puppet.withParams({ ...puppet.params, timeoutMs: HASTY_MS })
export const thinker = stepAgent({
  name: 'thinker',
  environment: scripted,
  act: async ({ step, signal }) => {
    await sleep(step === 1 ? 60_000 : 1, undefined, { signal })
    return 'a thought'
  },
  timeoutMs: HASTY_MS,
})

/** Computes a millisecond for each of its steps, without an end. What it shows is the time. */
const busy = defineEnvironment({
  name: 'busy',
  reset: () => ({ state: 0, observation: performance.now() }),
  step() {
    const until = performance.now() + 1
    while (performance.now() < until);
    return { observation: performance.now(), reward: 0, done: false }
  },
})
export const worker = stepAgent({
  name: 'worker',
  environment: busy,
  act: () => 'work',
  maxSteps: 1e9,
  timeoutMs: 1000,
})
export const drudge = worker.withParams({ ...worker.params, timeoutMs: null })

// ---- environments with a mistake in them

const shared = { visits: 0 }
const leaky = defineEnvironment({
  name: 'leaky',
  reset: () => ({ state: shared, observation: 0 }),
  step: (state) => ({ observation: ++state.visits, reward: 0, done: true }),
})
export const leaking = stepAgent({ name: 'leaking', environment: leaky, act: () => 'go' })

const start: { readonly at: number } = Object.freeze({ at: 0 })
const pure = defineEnvironment({
  name: 'pure',
  reset: () => ({ state: start, observation: 0 }),
  step: ({ at }) => ({ state: { at: at + 1 }, observation: at + 1, reward: 0, done: at === 2 }),
})
export const sharing = stepAgent({ name: 'sharing', environment: pure, act: () => 'go' })

/** Shows the very objects that it goes on to change. */
const inPlace = defineEnvironment({
  name: 'in-place',
  reset: () => {
    const state = { board: [0, 0], moves: [{ to: 0 }, { to: 1 }] }
    return { state, observation: { board: state.board }, candidates: state.moves }
  },
  step(state, move) {
    state.board[move.to]!++
    move.to = 1 - move.to
    state.moves.push({ to: 0 })
    const done = state.moves.length === 5
    return { observation: { board: state.board }, reward: 0, done, candidates: state.moves }
  },
  close(state) {
    state.board.length = 0
  },
})
export const inPlacePlayer = stepAgent({
  name: 'in-place-player',
  environment: inPlace,
  act: ({ candidates, step }) => candidates![step]!,
})

/** Returns whatever the task says. */
const returning = defineEnvironment({
  name: 'returning',
  reset: ({ input }: { input: { reset?: unknown; step?: unknown; circle?: boolean } }) =>
    ('reset' in input ? input.reset : { state: input, observation: 0 }) as { state: typeof input; observation: number },
  step: (state) =>
    ('step' in state ? state.step : { observation: () => {}, reward: 0, done: false }) as {
      observation: number
      reward: number
      done: boolean
    },
})
export const returner = stepAgent({ name: 'returner', environment: returning, act: () => 'go' })

// ---- actions

const menu = defineEnvironment({
  name: 'menu',
  reset: ({ input }: { input: { dishes: readonly { dish: string }[]; choose: unknown } }) => ({
    state: input,
    observation: 'hungry',
    candidates: input.dishes,
  }),
  step: (_state, action) => ({ observation: action.dish, reward: 1, done: true }),
})
export const guest = stepAgent({
  name: 'guest',
  environment: menu,
  act: ({ task }) => (task.input as { choose: { dish: string } }).choose,
})

/** What an environment and a policy are given. */
const mirror = defineEnvironment({
  name: 'mirror',
  reset: (task: { input: string }, ctx) => ({
    state: 0,
    observation: { task, attempt: ctx.attempt, key: ctx.idempotencyKey, keys: Object.keys(ctx) },
  }),
  step: (_state, action: object) => ({ observation: action as never, reward: 0, done: true }),
})
export const seer = stepAgent({
  name: 'seer',
  environment: mirror,
  act: ({ observation, candidates, mode, step, task, random }, ctx) => ({
    ...observation,
    ...{ candidates, mode, step, same: task === observation.task, random: random() },
    answer: typeof ctx.ask,
  }),
})

// ---- policies

export const valued = stepAgent({
  name: 'valued',
  environment: walk,
  act: () => ({ action: 'right', logProb: -0.25, value: 0.75 }),
  maxSteps: 1,
})

/** Says which version it is, and how often one was opened in this worker. */
const opened = new Map<number, number>()
const versioned: Policy<unknown, string> = {
  name: 'versioned',
  async open({ version }: PolicyRef): Promise<OpenPolicy<unknown, string>> {
    opened.set(version, (opened.get(version) ?? 0) + 1)
    if (version === 13) throw new Error('the weights are lost')
    if (version === 14) return { text: { prompt: 'no action' } }
    return { act: ({ mode }) => ({ action: `${mode} ${version} ${opened.get(version)}`, logProb: -1 }) }
  },
}
const echo = defineEnvironment({
  name: 'echo',
  reset: () => ({ state: 0, observation: '' }),
  step: (_state, action: string) => ({ observation: action, reward: 0, done: true }),
})
export const learner = stepAgent({ name: 'learner', environment: echo, policy: versioned })
export const asker = stepAgent({
  name: 'asker',
  environment: echo,
  act: async ({ task }, ctx) => ctx.ask<string>('oracle', task.input),
})
/** What it says is what it has learned. */
const wellRead: Policy<unknown, string> = {
  name: 'well-read',
  async open({ at }: PolicyRef, host): Promise<OpenPolicy<unknown, string>> {
    const words = Buffer.from(await host.blob((at as { blob: string }).blob)).toString()
    return { act: () => ({ action: words, logProb: 0 }) }
  },
}
export const wellReadAgent = stepAgent({ name: 'well-read-agent', environment: echo, policy: wellRead })
export const lost = stepAgent({ name: 'lost', environment: echo, policy: randomPolicy() })

// ---- chances

const dice = defineEnvironment({
  name: 'dice',
  reset: (_task, ctx) => ({ state: 0, observation: ctx.random(), candidates: ['roll', 'roll on'] }),
  step: (state, _action, ctx) => ({
    ...{ state: state + 1, observation: ctx.random(), reward: 0, done: state === 4 },
    candidates: ['roll', 'roll on'],
  }),
})
export const gambler = stepAgent({ name: 'gambler', environment: dice, policy: randomPolicy() })
export const sitter = stepAgent({ name: 'sitter', environment: dice, policy: fixedPolicy('roll') })

// ---- graded

const judgedEcho = defineEnvironment({
  name: 'judged-echo',
  reset: () => ({ state: 0, observation: '' }),
  step: (_state, action: string) => ({ observation: action, reward: 0, done: true }),
  grade: ({ answer, groundTruth, episode }) =>
    episode?.ending.kind === 'terminated' && answer.startsWith(String(groundTruth)) ? 0.5 : 0,
})
export const judged = stepAgent({ name: 'judged', environment: judgedEcho, act: () => 'sample 0 1' })
const strict = defineGrader({ name: 'strict', grade: ({ answer, groundTruth }) => answer === groundTruth })
export const judgedOtherwise = stepAgent({
  name: 'judged-otherwise',
  environment: judgedEcho,
  act: () => 'sample 0 1',
  grade: strict,
})
