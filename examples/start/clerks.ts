import { setTimeout as sleep } from 'node:timers/promises'
import { defineEnvironment, stepAgent } from 'manyworlds/agents'
import { softmaxPolicy } from 'manyworlds/train'
import { desk } from '../tool-desk/desk.ts'
import { deskFeatures } from '../tool-desk/features.ts'

const LEAST_MS = 2
const MOST_MS = 10

/** The tool desk with tools that take a while, as tools do. How long has its own random numbers, so it changes no choice. */
const slowDesk = defineEnvironment({
  name: 'slow-desk',
  reset: desk.reset,
  step: async (state, call, ctx) => {
    await sleep(LEAST_MS + ctx.randomStream('latency')() * (MOST_MS - LEAST_MS))
    return desk.step(state, call, ctx)
  },
})

const policy = softmaxPolicy({ name: 'clerk', features: deskFeatures })
export const clerk = stepAgent({ name: 'clerk', environment: desk, policy })
export const slowClerk = stepAgent({ name: 'slow-clerk', environment: slowDesk, policy })
