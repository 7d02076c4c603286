import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, ParallelizableAgent } from 'manyworlds'
import { recordStep } from '../../src/trajectory/record.ts'

/** Walks by chance, and records where it went. */
export const roamer = defineAgent({
  name: 'roamer',
  run: async ({ steps, slow = 0 }: { steps: number; slow?: number }, ctx) => {
    const latency = ctx.randomStream('latency')
    let place = 0
    for (let turn = 0; turn < steps; turn++) {
      if (slow > 0) await sleep(slow * latency() * Math.random() * 2)
      const choice = Math.floor(ctx.random() * 3)
      const reward = choice === 2 ? 1 : 0
      place += choice - 1
      await recordStep(ctx, {
        ...{ kind: 'action', observation: { place, turn }, candidates: ['left', 'stay', 'right'], choice, reward },
        ...{ action: ['left', 'stay', 'right'][choice]!, logProb: -Math.log(3), mode: 'sample' },
        policy: { name: 'chance', version: 1 },
      })
    }
    return place
  },
})

const scout = <const Name extends string>(name: Name) =>
  defineAgent({
    name,
    run: async ({ slow }: { slow: number }, ctx) => {
      for (let turn = 0; turn < 3; turn++) {
        await sleep(slow * Math.random())
        await ctx.step({ action: ctx.random(), observation: turn })
      }
      return name
    },
  })

/** Two at once, whose steps interleave as they like; in one worker, and as sub-tasks. */
const scouts = [scout('north'), scout('south')] as const
export const party = new ParallelizableAgent({ name: 'party', agents: scouts })
export const spreadParty = new ParallelizableAgent({ name: 'spread-party', agents: scouts, spread: true })

/** Asks for sub-tasks, one of which asks for more; fails until its last attempt. */
export const chief = defineAgent({
  name: 'chief',
  run: async ({ fails }: { fails: number }, ctx) => {
    await ctx.step({ action: `attempt ${ctx.attempt}`, reward: 1 })
    await ctx.runTask([
      roamer.task({ steps: 2 }, { id: 'walk', metadata: { split: 'train' } }),
      spreadParty.task({ slow: 1 }, { id: `look-${ctx.attempt}` }),
    ])
    if (ctx.attempt <= fails) throw new Error('not yet')
    await ctx.step({ action: 'done' })
    return 'found'
  },
})

/** Answers with the trajectory of a sub-task, as the worker has it. */
export const inspector = defineAgent({
  name: 'inspector',
  run: async (_input: null, ctx) => JSON.stringify(await (await ctx.runTask(roamer.task({ steps: 2 }))).toTrajectory()),
})
