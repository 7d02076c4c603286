import fc from 'fast-check'
import type { BranchReason, OpenedBranch } from '../../src/trajectory/branches.ts'
import type { Message, Step, StepContent, StepTokens } from '../../src/trajectory/step.ts'
import { made } from './made.ts'

/** A step by its branch and its place there, which do not depend on how branches interleave. */
export type Place = readonly [branch: number, place: number]

/** A trajectory before it has an order: the steps of each branch, with the others that they refer to by place. */
export interface Plan {
  readonly branches: readonly PlannedBranch[]
  /** Branches in the order in which one of them takes a step. */
  readonly order: readonly number[]
}

interface PlannedBranch {
  readonly agent: string
  readonly parent: { readonly branch: number; readonly place: number | null; readonly why: BranchReason } | null
  readonly steps: PlannedStep[]
}

/** References are places, kept beside the content. */
interface PlannedStep {
  readonly content: StepContent
  readonly requestFrom?: Place | null
  readonly tokensFrom?: Place | null
  readonly callOf?: { readonly of: Place; readonly position: number; readonly id: string } | null
}

const WHY: readonly BranchReason[] = ['parallel', 'serial', 'compaction', 'drift']
const text = fc.string({ maxLength: 8 })
/** Plain data, with what JSON has no form for here and there. */
export const data: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 2, depthSize: 'small' },
    text,
    fc.integer(),
    fc.double(),
    fc.constantFrom(null, true, undefined, -0, Number.NaN, Number.POSITIVE_INFINITY, 12n),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.string({ maxLength: 3 }), tie('value'), { maxKeys: 4, noNullPrototype: true }),
    fc.uint8Array({ maxLength: 4 }),
    fc.constantFrom(new Map([['k', 1]]), new Set(['s']), new Date(7)),
  ),
})).value

const event = fc.record({
  branch: fc.nat(),
  kind: fc.constantFrom('note', 'action', 'tool', 'model', 'model'),
  /** Decides whatever there is to choose. */
  dice: fc.array(fc.nat(1000), { minLength: 20, maxLength: 20 }),
  observation: data,
  action: data,
  reward: fc.option(fc.integer({ min: -9, max: 9 }), { nil: undefined }),
  words: text,
  ids: fc.array(fc.nat(50_000), { maxLength: 4 }),
  tail: fc.array(fc.nat(50_000), { maxLength: 4 }),
})

type Event = typeof event extends fc.Arbitrary<infer E> ? E : never

/** Plans of trajectories that hold all promises: of any mix of agents, with branches. */
export const plans: fc.Arbitrary<Plan> = fc
  .record({
    parents: fc.array(fc.record({ parent: fc.nat(), why: fc.constantFrom(...WHY) }), { maxLength: 3 }),
    events: fc.array(event, { maxLength: 16, size: 'max' }),
  })
  .map(({ parents, events }) => planOf(parents, events))

function planOf(parents: readonly { parent: number; why: BranchReason }[], events: readonly Event[]): Plan {
  const branches: PlannedBranch[] = [{ agent: 'root', parent: null, steps: [] }]
  const order: number[] = []
  let calls = 0
  for (const event of events) {
    const wanted = event.branch % (parents.length + 1)
    // A branch begins when it takes its first step, from one that is there.
    const number = Math.min(wanted, branches.length)
    if (number === branches.length) {
      const { parent, why } = parents[number - 1]!
      const from = parent % branches.length
      const last = branches[from]!.steps.length - 1
      const place = why === 'parallel' || why === 'serial' || last < 0 ? null : last
      branches.push({ agent: `agent-${number}`, parent: { branch: from, place, why }, steps: [] })
    }
    branches[number]!.steps.push(planStep(event, number, branches, () => `call-${calls++}`))
    order.push(number)
  }
  return { branches, order }
}

/** Places that a step of the branch may refer to: those before it, also before the branch began. */
function lineage(number: number, branches: readonly PlannedBranch[]): [Place, PlannedStep][] {
  const found: [Place, PlannedStep][] = []
  let upTo = branches[number]!.steps.length
  for (let at = number; ; ) {
    const branch = branches[at]!
    const own = branch.steps.slice(0, upTo).map((step, place): [Place, PlannedStep] => [[at, place], step])
    found.unshift(...own)
    if (branch.parent === null || branch.parent.place === null) return found
    upTo = branch.parent.place + 1
    at = branch.parent.branch
  }
}

function planStep(
  event: Event,
  number: number,
  branches: readonly PlannedBranch[],
  newCall: () => string,
): PlannedStep {
  const { observation, action, reward, words, dice } = event
  let rolled = 0
  const roll = (sides: number) => dice[rolled++ % dice.length]! % sides
  const before = lineage(number, branches)
  const rewarded = reward === undefined ? {} : { reward }
  const place = number === 0 ? {} : { branch: number, agent: branches[number]!.agent }
  const base = { ...place, usage: { inputTokens: roll(9) } }
  switch (event.kind) {
    case 'note':
      return {
        content: { kind: 'note', ...base, ...rewarded, action, observation, text: words, data: { ms: roll(9) } },
      }
    case 'action': {
      const candidates = [action, words, roll(9)]
      const policy = { name: 'p', version: roll(9) }
      const content = { ...base, observation, candidates, action, choice: 0, logProb: -roll(9) / 8, value: roll(9) }
      return { content: { kind: 'action', ...content, mode: 'sample', policy, reward: reward ?? 0, rewards: { a: 1 } } }
    }
    case 'tool': {
      const open = before.flatMap(([of, step]) =>
        step.content.kind === 'model' ? callsOf(of, step.content.reply) : [],
      )
      const call = open.length === 0 ? null : open[roll(open.length)]!
      const name = call?.name ?? 'own'
      const content = { ...base, ...rewarded, name, arguments: { raw: call?.raw ?? '{}', value: roll(9) }, ms: roll(9) }
      const came = roll(3) === 0 ? { error: { message: words, stack: `at ${roll(9)}` } } : { result: observation }
      return { callOf: call, content: { kind: 'tool', call: null, ...content, ...came } }
    }
    default: {
      const models = before.filter(([, { content }]) => content.kind === 'model')
      const asked = models.length > 0 && roll(3) > 0 ? models[roll(models.length)]! : undefined
      const known = asked ? messages(asked[1], (at) => stepAt(branches, at)) : []
      const keep = roll(known.length + 1)
      const open = known.slice(0, keep).flatMap(({ calls = [] }) => calls)
      const answers = open.slice(0, 1).map(({ id }): Message => ({ role: 'tool', content: words, callId: id }))
      const calls = Array.from({ length: roll(3) }, (_, i) => ({
        id: newCall(),
        name: `t${i}`,
        raw: `{"n":${roll(9)}}`,
      }))
      const added: Message[] = [...answers, { role: 'user', content: observation }]
      const sampled = models.filter(([, { content }]) => content.kind === 'model' && content.tokens !== null)
      const from = sampled.length > 0 && roll(4) > 0 ? sampled[roll(sampled.length)]![0] : null
      const tokens: StepTokens | null = roll(5) === 0 ? null : tokensOf(event)
      return {
        requestFrom: asked?.[0] ?? null,
        tokensFrom: tokens ? from : null,
        content: {
          ...{ kind: 'model', ...base, ...rewarded, role: 'agent', policy: { name: 'p', version: roll(3) } },
          server: { model: words, id: `id-${roll(99)}` },
          request: {
            from: null,
            keep: asked ? keep : 0,
            added: asked ? added : added.slice(-1),
            tools: 'tools',
            wire: words,
          },
          reply: { role: 'assistant', content: action, calls, wire: words },
          ...{ finish: 'stop', cached: false, tokens, ms: roll(9), retries: roll(3) },
          sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, other: null },
        },
      }
    }
  }
}

const tokensOf = ({ ids, tail }: Event): StepTokens => ({
  tokenizer: 'bpe',
  from: null,
  tail: Int32Array.from(tail),
  completion: Int32Array.from(ids),
  logProbs: Float64Array.from(ids, (id) => -id / 1e5),
  of: 'raw',
  constrained: false,
})

const stepAt = (branches: readonly PlannedBranch[], [branch, place]: Place) => branches[branch]!.steps[place]!

const callsOf = (of: Place, { calls = [] }: Message) =>
  calls.map(({ id, name, raw }, position) => ({ of, position, id, name, raw }))

function messages(step: PlannedStep, at: (place: Place) => PlannedStep): Message[] {
  if (step.content.kind !== 'model') return []
  const { request, reply } = step.content
  const known = step.requestFrom ? messages(at(step.requestFrom), at).slice(0, request.keep) : []
  return [...known, ...request.added, reply]
}

/** The steps of a plan, recorded in the order that it has, or another one that `random` makes up. */
export function stepsOf({ branches, order }: Plan, random?: () => number): Step[] {
  const taken = branches.map(() => 0)
  const index = new Map<string, number>()
  const steps: Step[] = []
  const at = (place: Place | null | undefined) => (place ? index.get(place.join())! : null)
  const total = order.length
  while (steps.length < total) {
    const ready = branches.flatMap(({ parent, steps: own }, number) =>
      taken[number]! < own.length && (!parent || taken[parent.branch]! > (parent.place ?? -1)) ? [number] : [],
    )
    const number = random ? ready[Math.floor(random() * ready.length)]! : order[steps.length]!
    const place = taken[number]!++
    const planned = branches[number]!.steps[place]!
    index.set([number, place].join(), steps.length)
    const opens = place === 0 && number > 0 ? { opens: [opened(branches, number, at)] } : {}
    steps.push({ index: steps.length, atMs: steps.length, ...placed(planned, at), ...opens })
  }
  return steps
}

function opened(
  branches: readonly PlannedBranch[],
  id: number,
  at: (place: Place | null) => number | null,
): OpenedBranch {
  const { agent, parent } = branches[id]!
  const { branch, place, why } = parent!
  return { id, agent, parent: { branch, step: place === null ? null : at([branch, place]), why } }
}

function placed(
  { content, requestFrom, tokensFrom, callOf }: PlannedStep,
  at: (place: Place | null | undefined) => number | null,
): StepContent {
  if (content.kind === 'tool')
    return { ...content, call: callOf ? { step: at(callOf.of)!, position: callOf.position, id: callOf.id } : null }
  if (content.kind !== 'model') return content
  const tokens = content.tokens && { ...content.tokens, from: at(tokensFrom) }
  return { ...content, tokens, request: { ...content.request, from: at(requestFrom) } }
}

/** Trajectories of such plans. */
export const trajectories = fc
  .record({
    plan: plans,
    answer: data,
    finalObservation: data,
    meta: fc.dictionary(fc.string(), data, { noNullPrototype: true }),
  })
  .map(({ plan, answer, finalObservation, meta }) => {
    const ending = { kind: 'truncated', by: 'maxSteps' } as const
    const episode = { ending, finalObservation, reward: 1, success: null }
    const around = { run: { id: 'r', seed: 7 }, task: { input: answer, metadata: meta } }
    return made(stepsOf(plan), { answer, episode }, around)
  })
