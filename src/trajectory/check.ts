import type { Branch } from './branches.ts'
import { canonical } from './canonical.ts'
import { callOf } from './conversation.ts'
import { wrongShapes } from './shapes.ts'
import type { ActionStep, ModelStep, Step, StepTokens } from './step.ts'
import type { TrajectoryParts } from './trajectory.ts'

/**
 * Returns the problems of a trajectory, each with its location; an empty list if there are none. For trajectories from outside:
 * one that was recorded here passes all checks.
 */
export function checkTrajectory(trajectory: TrajectoryParts): string[] {
  const shapes = wrongShapes(trajectory)
  if (shapes.length > 0) return shapes
  const { steps, branches } = trajectory
  return [
    ...checkNumbers(trajectory),
    ...checkBranches(branches, steps),
    ...new StepChecks(steps).all(),
    ...checkRewards(trajectory),
  ]
}

function* checkNumbers({ rollout, attempt, group, ms }: TrajectoryParts): Generator<string> {
  if (rollout < 1) yield `\`rollout\` must be at least 1, it is ${rollout}`
  if (attempt < 1) yield `\`attempt\` must be at least 1, it is ${attempt}`
  if (group?.size === 0) yield '`group.size` must be at least 1, it is 0'
  if (!(ms >= 0)) yield `\`ms\` must be a number of at least 0, it is ${ms}`
}

function* checkBranches(branches: readonly Branch[], steps: readonly Step[]): Generator<string> {
  const known = new Map(branches.map((branch) => [branch.id, branch]))
  if (known.size < branches.length) yield 'two branches have the same number'
  if (branches[0]?.id !== 0 || branches[0].parent !== null) yield 'the first branch must be number 0, without a parent'
  const first = new Map<number, number>()
  for (const { index, branch = 0 } of steps) if (!first.has(branch)) first.set(branch, index)
  for (const [branch, step] of first)
    if (!known.has(branch)) yield `step ${step} is in branch ${branch}, which is not in \`branches\``
  for (const { id, parent } of branches.slice(1)) {
    if (parent === null) yield `branch ${id} has no parent; only branch 0 may have none`
    else if (!known.has(parent.branch))
      yield `the parent of branch ${id} is branch ${parent.branch}, which is not in \`branches\``
    else if (parent.step !== null) yield* checkParentStep(id, parent.branch, parent.step, steps, first)
  }
  yield* checkCircles(known)
}

/** Reports cycles: following the parents of a branch must end. */
function* checkCircles(known: ReadonlyMap<number, Branch>): Generator<string> {
  const good = new Set<number>()
  for (const id of known.keys()) {
    const way = new Set<number>()
    let at: number | undefined = id
    while (at !== undefined && !good.has(at) && !way.has(at)) {
      way.add(at)
      at = known.get(at)?.parent?.branch
    }
    if (at !== undefined && way.has(at)) yield `branch ${at} is its own ancestor`
    for (const one of way) good.add(one)
  }
}

function* checkParentStep(
  id: number,
  from: number,
  parent: number,
  steps: readonly Step[],
  first: ReadonlyMap<number, number>,
): Generator<string> {
  const step = steps[parent]
  if (step === undefined) yield `branch ${id} starts after step ${parent}, which does not exist`
  else if ((step.branch ?? 0) !== from) yield `branch ${id} starts after step ${parent}, which is not in branch ${from}`
  else if (parent >= (first.get(id) ?? Number.POSITIVE_INFINITY))
    yield `branch ${id} has a step before step ${parent}, after which it starts`
}

/** Checks steps in order: a step may refer only to earlier ones. */
class StepChecks {
  readonly #steps: readonly Step[]
  /** For each model step: its number of messages, including the reply. */
  readonly #messages = new Map<number, number>()
  /** Ids of the calls so far. */
  readonly #calls = new Set<string>()

  constructor(steps: readonly Step[]) {
    this.#steps = steps
  }

  *all(): Generator<string> {
    for (const [place, step] of this.#steps.entries()) {
      if (step.index !== place)
        yield `step ${step.index} is at position ${place}; steps must be numbered from 0, in order`
      switch (step.kind) {
        case 'model':
          yield* this.#model(step)
          break
        case 'action':
          yield* checkAction(step)
          break
        case 'tool':
          if (step.call !== null && !callOf(this.#steps, step))
            yield `step ${place} has the result of a call that step ${step.call.step} did not make`
          break
        case 'note':
          break
      }
    }
  }

  *#model(step: Step & ModelStep): Generator<string> {
    const { index, request, reply, tokens } = step
    const { from, keep, added } = request
    const known = from === null ? 0 : this.#messages.get(from)
    if (known === undefined)
      yield `step ${index} continues the conversation of step ${from}, which is not an earlier model step`
    else if (keep > known) yield `step ${index} keeps ${keep} messages of step ${from}, which has only ${known}`
    this.#messages.set(index, (from === null ? 0 : keep) + added.length + 1)
    for (const message of [...added, reply]) {
      if (message.callId !== undefined && !this.#calls.has(message.callId))
        yield `step ${index} has a message with the result of call '${message.callId}', which no model made`
      for (const { id } of message.calls ?? []) this.#calls.add(id)
    }
    if (tokens && step.redacted) yield `step ${index} was redacted, but still has its tokens`
    else if (tokens) yield* this.#tokens(index, tokens)
  }

  *#tokens(index: number, { tokenizer, from, tail, completion, logProbs }: StepTokens): Generator<string> {
    const before = from === null ? undefined : this.#steps[from]
    if (from !== null && (from >= index || before?.kind !== 'model' || before.tokens === null))
      yield `step ${index} continues the tokens of step ${from}, which is not an earlier step with tokens`
    else if (before?.kind === 'model' && before.tokens?.tokenizer !== tokenizer)
      yield `step ${index} continues the tokens of step ${from}, which has another tokenizer`
    if (tail.some((id) => id < 0) || completion.some((id) => id < 0)) yield `step ${index} has a token id below 0`
    if (logProbs === null) return
    if (logProbs.length !== completion.length)
      yield `step ${index} has ${logProbs.length} log-probabilities for ${completion.length} completion ids`
    // Rounding in a sampler may give a value slightly above 0.
    if (logProbs.some((logProb) => !(logProb > Number.NEGATIVE_INFINITY && logProb <= 1e-3)))
      yield `step ${index} has an impossible log-probability: above 0, infinite or NaN`
  }
}

function* checkAction({ index, candidates, choice, action, logProb }: Step & ActionStep): Generator<string> {
  if (candidates && choice !== undefined) {
    if (choice >= candidates.length) yield `step ${index} chose candidate ${choice} of ${candidates.length}`
    else if (canonical(candidates[choice]) !== canonical(action))
      yield `step ${index} chose candidate ${choice}, but its action differs from it`
  }
  if (logProb !== null && !(logProb > Number.NEGATIVE_INFINITY && logProb <= 1e-3))
    yield `step ${index} has the impossible log-probability ${logProb}`
}

function* checkRewards({ steps, grade, episode }: TrajectoryParts): Generator<string> {
  for (const { index, reward } of steps)
    if (reward !== undefined && !Number.isFinite(reward))
      yield `step ${index} has the reward ${reward}, which is not finite`
  if (episode?.reward !== undefined && episode.reward !== null && !Number.isFinite(episode.reward))
    yield `the reward of the episode is ${episode.reward}, which is not finite`
  if (grade === null) return
  if (grade.reward !== null && !Number.isFinite(grade.reward))
    yield `the grade has the reward ${grade.reward}, which is not finite`
  if (grade.error && grade.reward !== null) yield 'grading failed, but the grade has a reward'
}
