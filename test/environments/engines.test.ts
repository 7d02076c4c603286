import { type ActionStep, type RunConfig, Runners } from 'manyworlds'
import { afterAll, expect, it } from 'vitest'
import { handyman } from '../agents/tool-worlds.ts'
import * as worlds from '../agents/worlds.ts'
import { type Daemon, startNode } from '../nodes/daemon.ts'

let node: Daemon | undefined
afterAll(async () => {
  await Runners.shutdown()
  await node?.kill()
})

/** All that an episode is, without times. */
async function episodes(config: RunConfig) {
  const actions = ['use_tool[add] with a[1] b[2]', 'use_tool[missing]', 'use_tool[submit] with answer[3]']
  const tasks = [
    ...Array.from({ length: 20 }, () => worlds.walker.task({ width: 4 })),
    ...Array.from({ length: 20 }, () => worlds.rightwards.task({ width: 4 })),
    handyman.task({ instruction: 'Add.', actions }),
    worlds.leaking.task(undefined),
  ]
  const responses = [...(await Runners.runTask(tasks, config)).values()]
  return responses.map(({ answer, error, episode, digest, trajectory }) => ({
    ...{ answer, message: error?.message, episode, digest },
    steps: trajectory.map((step) => ({ ...(step as ActionStep), atMs: 0, ms: 0 })),
  }))
}

it('is the same on another machine, where its code has come in a bundle', async () => {
  node = await startNode()
  const here = await episodes({ seed: 5, workerNum: 2 })
  for (const { message, digest } of here) expect([message, digest]).toEqual([undefined, expect.any(String)])
  expect(await episodes({ seed: 5, engineName: 'nodes', nodes: { addresses: [node.address] } })).toEqual(here)
})
