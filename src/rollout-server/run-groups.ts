import { randomInt } from 'node:crypto'
import type { AnyAgent } from '../agent.ts'
import { Problem } from '../network/http-problem.ts'
import type { RunConfig } from '../run-config.ts'
import { streamTask } from '../runners/runners.ts'
import type { TaskLike, TaskResponse } from '../task.ts'
import { type AnsweredGroup, type AnsweredRollout, answered } from './answer.ts'
import type { RolloutRequest } from './request.ts'
import { retargetAgent } from './retarget-agent.ts'

const SEEDS = 2 ** 31

export interface GroupsAsked {
  readonly agent: AnyAgent
  /** The run options of the file and the command line. */
  readonly config: RunConfig
  readonly request: RolloutRequest
  readonly runId: string
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal
}

/** Runs the groups of a request as one run, and returns them in the requested order. */
export async function runGroups(asked: GroupsAsked): Promise<AnsweredGroup[]> {
  const { config, request, runId, signal } = asked
  const { tasks, rollouts, seed = randomInt(SEEDS), deadlineMs } = request
  const { agent, models } = retargetAgent(asked.agent, config, request)
  const ids = tasks.map(({ id }, index) => id ?? `t${index + 1}`)
  const list = tasks.map(({ input, groundTruth, metadata }, index) =>
    agent.task(input, {
      id: ids[index]!,
      ...(groundTruth !== undefined && { groundTruth }),
      ...(metadata && { metadata }),
    }),
  )
  const found = new Map(ids.map((id) => [id, [] as AnsweredRollout[]]))
  const responses = streamTask(list as Iterable<TaskLike> as never, {
    ...{ ...config, models, rollouts, seed, runId, signal },
    ...(deadlineMs !== undefined && { deadlineMs }),
  }) as AsyncIterable<TaskResponse>
  for await (const response of responses) {
    const rollout = await answered(response, request.sampling)
    found.get(response.groupId ?? response.id)?.push(rollout)
  }
  const groups = [...found].map(([task, all]) => ({ task, rollouts: all.sort((a, b) => a.rollout - b.rollout) }))
  if (groups.some((group) => group.rollouts.length < rollouts))
    throw new Problem(503, 'STOPPED', `run ${runId} was stopped before all its rollouts finished`)
  return groups
}
