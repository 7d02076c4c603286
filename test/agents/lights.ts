import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'
import { defineEnvironment, stepAgent } from 'manyworlds/agents'
import { softmaxPolicy } from 'manyworlds/train'

/** A light shows, and one of the ways is right for it. Three lights in a row make an episode. */
export interface LightsTask {
  readonly street: number
  /** Milliseconds at most that a step takes, by chance. It changes no choice. */
  readonly delayMs?: number
  /** What every episode is given, whatever it did. */
  readonly reward?: number
  /** What goes wrong on purpose. */
  readonly fails?: 'always'
  /** Kills the worker by itself, once: this file is not there before. */
  readonly crashOnce?: string
}

const LIGHTS = ['red', 'amber', 'green', 'blue']
const WAYS = ['stop', 'wait', 'go', 'turn']
const LENGTH = 3

export const lights = defineEnvironment({
  name: 'lights',
  reset: ({ input }: { input: LightsTask }, ctx) => {
    if (input.fails) throw new Error('the street is closed')
    const light = Math.floor(ctx.random() * LIGHTS.length)
    return { state: { input, light, seen: 0, right: 0 }, observation: { light: LIGHTS[light]! }, candidates: WAYS }
  },
  step: async (state, way, ctx) => {
    const { delayMs = 0, crashOnce } = state.input
    if (delayMs > 0) await sleep(ctx.randomStream('latency')() * delayMs)
    if (crashOnce !== undefined) await crash(crashOnce)
    state.right += way === WAYS[state.light] ? 1 : 0
    const done = ++state.seen === LENGTH
    state.light = Math.floor(ctx.random() * LIGHTS.length)
    const success = done && state.right === LENGTH
    const reward = state.input.reward ?? state.right / LENGTH
    return {
      ...{ observation: { light: LIGHTS[state.light]! }, candidates: WAYS },
      ...{ reward: done ? reward : 0, done, success },
    }
  },
})

async function crash(file: string): Promise<void> {
  const { writeFile } = await import('node:fs/promises')
  const first = await writeFile(file, '', { flag: 'wx' }).then(
    () => true,
    () => false,
  )
  if (first) process.kill(process.pid, 'SIGKILL')
}

export const lightsPolicy = softmaxPolicy<{ light: string }, string>({
  ...{ name: 'driver', bits: 8, features: ({ light }, way) => [`${light} ${way}`] },
})
export const driver = stepAgent({ name: 'lights-driver', environment: lights, policy: lightsPolicy })

/** Another policy, which no worker can open. */
export const broken = stepAgent({
  name: 'broken-driver',
  environment: lights,
  policy: {
    ...lightsPolicy,
    open: () => {
      throw new Error('no such weights')
    },
  },
})

export const lightsTasks = (count: number, more: Partial<LightsTask> = {}): { input: LightsTask }[] =>
  Array.from({ length: count }, (_, street) => ({ input: { street, ...more } }))

/** A policy whose features depend on the process that computes them. */
export const fickle = stepAgent({
  name: 'fickle-driver',
  environment: lights,
  policy: softmaxPolicy<{ light: string }, string>({
    ...{ name: 'fickle', bits: 8 },
    features: ({ light }, way) => [
      [`${light} ${way}`, 1],
      [way, isMainThread ? 1 : -1],
    ],
  }),
})
