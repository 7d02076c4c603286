import { createHash, type Hash, hash } from 'node:crypto'
import type { OpenedBranch } from './branches.ts'
import { canonical } from './canonical.ts'
import type { Ending, Episode } from './episode.ts'
import type { Message, ModelStep, Step, StepTokens, ToolStep } from './step.ts'

/** A branch is hashed incrementally from this many characters on. Most branches stay shorter. */
const CHUNK_CHARS = 16 * 1024

/** The state of a branch. */
interface BranchText {
  opened: OpenedBranch | undefined
  text: string
  hash: Hash | undefined
  steps: number
  /** Call ids, numbered in the order in which they appear: servers make new ids each time, but the order is stable. */
  calls: Map<string, number> | undefined
  /** Tool results since the last step of another kind. They arrive in any order and are digested in the order of the calls. */
  results: { readonly step: number; readonly position: number; readonly text: string }[]
}

/**
 * Computes the digest of a trajectory: SHA-256 of what an agent did and saw. It must not depend on where or when that
 * happened, so it uses an allow list: actions, candidates, observations, rewards, messages, tokens, log-probabilities, tool
 * results, and the ending. It excludes times, machines, attempts, versions, usage, retries, texts of notes and ids of servers.
 * Branches are digested one by one, in the order of their numbers, so the interleaving of their steps does not matter.
 */
export class TrajectoryDigest {
  readonly #branches = new Map<number, BranchText>()
  /** For each step so far: its branch and its position there. */
  readonly #places: [branch: number, place: number][] = []
  #byClock = false

  add(step: Step): void {
    for (const opened of step.opens ?? []) this.#branch(opened.id).opened = opened
    const { branch: number = 0 } = step
    const branch = this.#branch(number)
    this.#places.push([number, branch.steps++])
    if (step.kind === 'tool' && step.call !== null) {
      const { step: asked, position } = step.call
      branch.results.push({ step: asked, position, text: this.#toolText(step) })
      return
    }
    const text = this.#stepText(step, branch)
    takeResults(branch)
    branch.text += text
    if (branch.text.length > CHUNK_CHARS) hashText(branch)
  }

  /** Returns undefined if there is nothing to compare, or if a timeout ended the episode: the result then depends on timing. */
  end(status: 'success' | 'failed', episode: Episode | undefined): string | undefined {
    if (this.#byClock || (episode && endedByClock(episode.ending))) return undefined
    if (this.#places.length === 0 && episode === undefined) return undefined
    const numbers = [...this.#branches.keys()].sort((a, b) => a - b)
    let text = 'manyworlds.digest.1\n'
    for (const number of numbers) text += this.#branchText(number, this.#branch(number))
    return hash('sha256', `${text}${status}\n${episode ? endText(episode) : ''}`)
  }

  #branch(number: number): BranchText {
    let branch = this.#branches.get(number)
    if (branch === undefined) {
      branch = { opened: undefined, text: '', hash: undefined, steps: 0, calls: undefined, results: [] }
      this.#branches.set(number, branch)
    }
    return branch
  }

  #branchText(number: number, branch: BranchText): string {
    takeResults(branch)
    if (branch.hash !== undefined || branch.text.length > CHUNK_CHARS) hashText(branch)
    const { agent, parent } = branch.opened ?? {}
    const head = parent ? [number, agent, parent.why, parent.branch, this.#place(parent.step)] : [number]
    const content = branch.hash ? branch.hash.copy().digest('hex') : branch.text
    return `${JSON.stringify(head)}${content.length}:${content}\n`
  }

  #stepText(step: Step, branch: BranchText): string {
    switch (step.kind) {
      case 'note':
        if (step.ends && endedByClock(step.ends.ending)) this.#byClock = true
        return `note\n${actionText(step)}${step.ends ? endText(step.ends) : ''}`
      case 'action':
        return `action\n${actionText(step)}${lines(step.candidates, step.choice, step.logProb, step.value, step.mode, step.rewards)}`
      case 'model':
        return this.#modelText(step, branch)
      case 'tool':
        return this.#toolText(step)
    }
  }

  #modelText({ role, request, reply, finish, tokens, reward }: ModelStep, branch: BranchText): string {
    const { from, keep, added, tools } = request
    const said = [...added, reply].map((message) => messageOf(message, branch))
    const words = lines(role, this.#place(from), keep, said, tools, finish, reward)
    return `model\n${words}${tokens ? this.#tokenText(tokens) : ''}`
  }

  #tokenText({ tokenizer, from, tail, completion, logProbs, of, constrained }: StepTokens): string {
    return lines(tokenizer, this.#place(from), tail, completion, logProbs, of, constrained)
  }

  #toolText({ call, name, arguments: given, result, error, reward }: ToolStep): string {
    const asked = call && [this.#place(call.step), call.position]
    return `tool\n${lines(asked, name, given.raw, result, messageIn(error), reward)}`
  }

  /** Identifies a step by its position in its branch, because its index depends on how branches interleave. */
  #place(step: number | null): unknown {
    return step === null ? null : (this.#places[step] ?? step)
  }
}

/** The digest of a recorded attempt; equal to that of its response. */
export function digestOf(
  steps: Iterable<Step>,
  { status, episode }: { readonly status: 'success' | 'failed'; readonly episode?: Episode | undefined },
): string | undefined {
  const digest = new TrajectoryDigest()
  for (const step of steps) digest.add(step)
  return digest.end(status, episode)
}

function takeResults(branch: BranchText): void {
  if (branch.results.length === 0) return
  const results = branch.results.splice(0).sort((a, b) => a.step - b.step || a.position - b.position)
  for (const { text } of results) branch.text += text
}

function hashText(branch: BranchText): void {
  branch.hash ??= createHash('sha256')
  branch.hash.update(branch.text)
  branch.text = ''
}

function lines(...values: readonly unknown[]): string {
  let text = ''
  for (const value of values) text += `${canonical(value)}\n`
  return text
}

const actionText = ({ action, observation, reward }: Pick<Step, 'action' | 'observation' | 'reward'>): string =>
  lines(action, observation, reward)

const endText = ({ ending, finalObservation, reward, success }: Episode): string =>
  lines(ending.kind, ending.kind === 'truncated' ? ending.by : null, finalObservation, reward, success)

const endedByClock = (ending: Ending): boolean => ending.kind === 'truncated' && ending.by === 'timeout'

function messageOf({ role, content, reasoning, calls, callId }: Message, branch: BranchText): unknown[] {
  const place = (id: string) => {
    branch.calls ??= new Map()
    let known = branch.calls.get(id)
    if (known === undefined) branch.calls.set(id, (known = branch.calls.size))
    return known
  }
  const called = calls?.map(({ id, name, raw }) => [place(id), name, raw])
  return [role, content, reasoning ?? null, called ?? null, callId === undefined ? null : place(callId)]
}

/** The message of an error, without its stack, which contains paths of a machine. */
function messageIn(error: unknown): unknown {
  const message = typeof error === 'object' && error !== null && 'message' in error ? error.message : undefined
  return typeof message === 'string' ? message : error
}
