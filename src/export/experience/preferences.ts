import { isDeepStrictEqual } from 'node:util'
import { judgementOfTrajectory } from '../../grade/judgement.ts'
import type { RunFile } from '../../store/run-file.ts'
import type { Trajectory } from '../../trajectory/trajectory.ts'
import { type Conversation, conversationsOf } from './conversations.ts'
import type { ExportRow } from './experience-table.ts'
import { type GroupMember, groupOf, groupsOf } from './groups.ts'
import { type LeftOut, REASONS, type Reason } from './left-out.ts'
import type { Selector } from './selection.ts'

/** A line for DPO and similar methods, in the format of TRL: two continuations of a prompt, of which one is better. */
export interface Preference {
  readonly prompt: readonly object[]
  readonly chosen: readonly object[]
  readonly rejected: readonly object[]
  readonly tools?: readonly object[]
  readonly score_chosen: number
  readonly score_rejected: number
}

export interface PreferenceOptions {
  /** The least difference of the rewards of a pair. Default: they differ. */
  readonly minMargin?: number | undefined
}

/**
 * Pairs the best and the worst rollout of each group. Both are chosen by reward before anything is read; among equal rewards the
 * first rollout is chosen. If one of them cannot be exported, there is no pair: using the second best would bias the data.
 */
export async function* preferences(
  run: RunFile,
  select: Selector,
  leftOut: LeftOut,
  { minMargin = 0 }: PreferenceOptions,
): AsyncGenerator<ExportRow<Preference>> {
  const pairs = new Map([...groupsOf(run)].map(([group, members]) => [group, pairOf(members, minMargin)]))
  const waiting = new Map<string, Side>()
  const removed = () => leftOut.add(REASONS.removedSteps)
  for await (const trajectory of run.trajectories({ removed })) {
    const group = groupOf(trajectory)
    const side = sideOf(trajectory, pairs.get(group), select)
    if ('one' in side) {
      leftOut.add(side)
      continue
    }
    const other = waiting.get(group)
    if (other === undefined) {
      waiting.set(group, side)
      continue
    }
    waiting.delete(group)
    const [best, worst] = side.isBest ? [side, other] : [other, side]
    const row = joined(best, worst)
    if ('one' in row) for (const _ of [best, worst]) leftOut.add(row)
    else yield { row, trajectory: best.trajectory }
  }
  for (const _ of waiting.values()) leftOut.add(REASONS.otherLeftOut)
}

interface Pair {
  readonly best: string
  readonly worst: string
}

function pairOf(members: readonly GroupMember[], minMargin: number): Pair | undefined {
  const known = members.filter((member): member is GroupMember & { reward: number } => member.reward !== null)
  if (known.length < 2) return undefined
  const best = known.reduce((one, other) => (other.reward > one.reward ? other : one))
  const worst = known.reduce((one, other) => (other.reward < one.reward ? other : one))
  const margin = best.reward - worst.reward
  return margin > 0 && margin >= minMargin ? { best: best.id, worst: worst.id } : undefined
}

interface Side {
  readonly trajectory: Trajectory
  readonly isBest: boolean
  readonly conversation: Conversation
}

function sideOf(trajectory: Trajectory, pair: Pair | undefined, select: Selector): Side | Reason {
  const unwanted = select(trajectory)
  // The worst rollout of a pair need not be solved or have a high reward. Its split is that of its group.
  if (unwanted === REASONS.otherSplit) return unwanted
  if (pair === undefined) return REASONS.sameReward
  const isBest = trajectory.id === pair.best
  if (!isBest && trajectory.id !== pair.worst) return REASONS.notPaired
  if (isBest && unwanted) return unwanted
  const conversations = conversationsOf(trajectory)
  if ('one' in conversations) return conversations
  const [conversation, ...more] = conversations
  return more.length > 0 ? REASONS.manyConversations : { trajectory, isBest, conversation: conversation! }
}

/** The prompt is the common prefix of both conversations, up to where the replies of the model differ. */
function joined(best: Side, worst: Side): Preference | Reason {
  const [one, other] = [best.conversation, worst.conversation]
  let length = 0
  while (length < one.messages.length && isDeepStrictEqual(one.messages[length], other.messages[length])) length++
  const [chosen, rejected] = [one.messages.slice(length), other.messages.slice(length)]
  if (chosen.length === 0 && rejected.length === 0) return REASONS.notDifferent
  if (length === 0 || !isReply(chosen[0]) || !isReply(rejected[0]) || !isDeepStrictEqual(one.tools, other.tools))
    return REASONS.notAlike
  return {
    prompt: one.messages.slice(0, length),
    ...{ chosen, rejected },
    ...(one.tools && { tools: one.tools }),
    score_chosen: rewardOf(best),
    score_rejected: rewardOf(worst),
  }
}

/** A pair is chosen by its rewards, so both have one. */
const rewardOf = ({ trajectory }: Side): number => judgementOfTrajectory(trajectory).reward!

const isReply = (message: object | undefined): boolean => (message as { role?: unknown })?.role === 'assistant'
