import { randomInt } from 'node:crypto'
import type { AnyAgent } from '../agent.ts'
import type { RunConfig } from '../run-config.ts'
import { streamTask } from '../runners/runners.ts'
import type { TaskLike, TaskResponse } from '../task.ts'
import { aimed } from './aimed-agent.ts'
import { type AnsweredGroup, type AnsweredRollout, answered } from './answer.ts'
import { Problem } from './problem.ts'
import type { RolloutRequest } from './request.ts'

const SEEDS = 2 ** 31

export interface GroupsAsked {
  readonly agent: AnyAgent
  /** What the file and the command line say of runs. */
  readonly config: RunConfig
  readonly request: RolloutRequest
  readonly runId: string
  /** Aborted when the caller goes away. */
  readonly signal: AbortSignal
}

/** Runs the groups of a request as one run of the store, and gives them in the order in which they were asked for. */
export async function runGroups(asked: GroupsAsked): Promise<AnsweredGroup[]> {
  const { config, request, runId, signal } = asked
  const { tasks, rollouts, seed = randomInt(SEEDS), deadlineMs } = request
  const { agent, models } = aimed(asked.agent, config, request)
  const ids = tasks.map(({ id }, place) => id ?? `t${place + 1}`)
  const list = tasks.map(({ input, groundTruth, metadata }, place) =>
    agent.task(input, {
      id: ids[place]!,
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
    const rollout = await answered(response, request.sampling?.temperature)
    found.get(response.groupId ?? response.id)?.push(rollout)
  }
  const groups = [...found].map(([task, all]) => ({ task, rollouts: all.sort((a, b) => a.rollout - b.rollout) }))
  if (groups.some((group) => group.rollouts.length < rollouts))
    throw new Problem(503, 'STOPPED', `run ${runId} was stopped before all its rollouts were done`)
  return groups
}
