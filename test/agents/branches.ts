import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, ParallelizableAgent, SerialableAgent } from 'manyworlds'
import { openBranch } from '../../src/trajectory/branches.ts'
import { endEpisode } from '../../src/trajectory/episode.ts'
import { recordStep } from '../../src/trajectory/record.ts'

/** Names of agents that take their time. */
type Slow = readonly string[]

const walker = <const Name extends string>(name: Name, more?: (ctx: object) => Promise<void>) =>
  defineAgent({
    name,
    run: async (slow: Slow, ctx): Promise<Slow> => {
      for (let turn = 0; turn < 2; turn++) {
        if (slow.includes(name)) await sleep(20)
        await ctx.step({ action: turn, observation: ctx.random() })
      }
      await more?.(ctx)
      return slow
    },
  })

/** Goes on twice with a shorter conversation. */
const shorten = async (ctx: object) => {
  for (const turn of [1, 2]) {
    const branch = openBranch(ctx, { why: 'compaction' })
    await recordStep(ctx, { kind: 'note', branch, action: `shorter ${turn}` })
    await sleep(1)
  }
}

const finish = async (ctx: object) =>
  endEpisode(ctx, { ending: { kind: 'terminated' }, finalObservation: 'the end', reward: 2, success: true })

const pipeline = new SerialableAgent({ name: 'pipeline', agents: [walker('reader'), walker('writer')] })
const inner = new ParallelizableAgent({
  name: 'inner',
  agents: [walker('left', shorten), walker('right', finish)],
  aggregateFunc: () => [] as Slow,
})

/** By number: team 0, pipeline 1, reader 2, writer 3, critic 4, inner 5, left 6, right 7. */
export const team = new ParallelizableAgent({
  name: 'team',
  agents: [pipeline, walker('critic', shorten), inner.withParams(inner.params)],
})

/** A single agent that opens branches, one of them from another. */
export const wanderer = defineAgent({
  name: 'wanderer',
  run: async (_input: unknown, ctx) => {
    await ctx.step({ action: 'first' })
    const first = openBranch(ctx, { why: 'drift' })
    await recordStep(ctx, { kind: 'note', branch: first, action: 'elsewhere' })
    await ctx.step({ action: 'second' })
    const second = openBranch(ctx, { why: 'compaction', from: first })
    await recordStep(ctx, { kind: 'note', branch: second, action: 'further' })
    return [first, second]
  },
})
