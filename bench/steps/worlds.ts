import { defineEnvironment, randomPolicy, stepAgent } from 'manyworlds/agents'
import { type DeskObservation, type DeskTask, desk } from '../../examples/tool-desk/desk.ts'

/** The least that an environment can do. */
export const counter = defineEnvironment({
  name: 'counter',
  reset: ({ input }: { input: { steps: number } }) => ({
    state: { at: 0, steps: input.steps },
    observation: { at: 0 },
    candidates: ['up', 'down'],
  }),
  step(state) {
    const at = ++state.at
    return { observation: { at }, reward: 0, done: at === state.steps, candidates: ['up', 'down'] }
  },
})
export const countingAgent = stepAgent({
  name: 'counting',
  environment: counter,
  policy: randomPolicy(),
  maxSteps: 1_000_000,
})

const MAX_STEPS = 10

export interface SlowObservation extends DeskObservation {
  readonly drawnMs?: number
  readonly measuredMs?: number
  readonly steps?: number
}

/** The tool desk with a world that takes its time: its last observation says how long, as drawn and as measured. */
const slowDesk = (leastMs: number, mostMs: number) =>
  defineEnvironment({
    name: 'slow-desk',
    reset: ({ id, input }: { id: string; input: DeskTask }, ctx) => {
      const { state, observation, candidates } = now(desk.reset({ id, input }, ctx))
      const times = { drawnMs: 0, measuredMs: 0, steps: 0 }
      return { state: { desk: state, times }, observation: observation as SlowObservation, candidates: candidates! }
    },
    async step({ desk: state, times }, action, ctx) {
      const ms = leastMs + ctx.randomStream('latency')() * (mostMs - leastMs)
      const began = performance.now()
      await new Promise((resolve) => setTimeout(resolve, ms))
      times.drawnMs += ms
      times.measuredMs += performance.now() - began
      times.steps++
      const { observation, reward, done, candidates } = now(desk.step(state, action, ctx))
      const over = done || times.steps === MAX_STEPS
      const shown: SlowObservation = over ? { ...observation, ...times } : observation
      return { observation: shown, reward, done: over, candidates: candidates! }
    },
  })

const byChance = { policy: randomPolicy(), maxSteps: MAX_STEPS }
/** 50 to 150 ms a step, as models take. */
export const slowClerk = stepAgent({ name: 'slow-clerk', environment: slowDesk(50, 150), ...byChance })
/** 5 to 20 ms a step, as tools take. */
export const briskClerk = stepAgent({ name: 'brisk-clerk', environment: slowDesk(5, 20), ...byChance })

function now<T>(value: T | Promise<T>): T {
  if (value instanceof Promise) throw new Error('the desk answers at once')
  return value
}
