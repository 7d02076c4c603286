import { setTimeout as sleep } from 'node:timers/promises'
import { defineEnvironment, type StepResult } from 'manyworlds/agents'
import { expect, it } from 'vitest'
import type { Context } from '../../src/agent.ts'
import type { Environment } from '../../src/agents/environment.ts'
import { EpisodeRun } from '../../src/agents/episode-run.ts'
import { EPISODE, type Episode } from '../../src/trajectory/episode.ts'
import { RECORD, RECORDED } from '../../src/trajectory/record.ts'

/** What the runtime is told about the end of an episode, by a context that does nothing but keep it. */
async function episodeOf(
  step: (at: number) => Partial<StepResult<unknown, unknown, unknown>> | Promise<never>,
  limits: { maxSteps?: number; timeoutMs?: number } = {},
): Promise<Episode> {
  const environment = defineEnvironment({
    name: 'scripted',
    reset: () => ({ state: { at: 0 }, observation: 'start' }),
    async step(state) {
      await sleep(1)
      return { observation: `after ${++state.at}`, reward: 0.25, done: false, ...(await step(state.at)) } as never
    },
  })
  let ended: Episode | undefined
  const ctx = {
    ...{ signal: new AbortController().signal, task: { id: 'a' }, random: Math.random, log: console.log },
    [RECORD]: () => RECORDED,
    [EPISODE]: (episode: Episode) => (ended = episode),
  }
  const plan = {
    ...{ agent: 'agent', environment: environment as unknown as Environment, chooser: 'it', policy: null },
    choose: () => 'go',
    read: (action: unknown) => ({ action, logProb: null }),
    mode: 'sample' as const,
    ...{ maxSteps: limits.maxSteps ?? 10, timeoutMs: limits.timeoutMs ?? null },
  }
  await new EpisodeRun(plan, undefined, ctx as unknown as Context).run()
  return ended!
}

it('says that the episode came to its end, with the sum of its rewards', async () => {
  expect(await episodeOf((at) => ({ done: at === 3, success: at === 3 }))).toEqual({
    ...{ ending: { kind: 'terminated' }, finalObservation: 'after 3', reward: 0.75, success: true },
  })
  expect(await episodeOf((at) => ({ done: at === 3, success: at < 3 }))).toMatchObject({ success: false })
  expect(await episodeOf(() => ({ done: true }))).toMatchObject({ success: null })
})

it('says that it was cut short, and by what', async () => {
  expect(await episodeOf(() => ({}), { maxSteps: 4 })).toEqual({
    ...{ ending: { kind: 'truncated', by: 'maxSteps' }, finalObservation: 'after 4', reward: 1, success: null },
  })
  expect(await episodeOf(() => ({ done: true, truncated: true }))).toMatchObject({
    ending: { kind: 'truncated', by: 'environment' },
  })
  expect(await episodeOf(() => ({ done: false, truncated: true }))).toMatchObject({
    ending: { kind: 'truncated', by: 'environment' },
  })
  const hangs = (at: number) => (at === 2 ? new Promise<never>(() => {}) : {})
  expect(await episodeOf(hangs, { timeoutMs: 100 })).toEqual({
    ...{ ending: { kind: 'truncated', by: 'timeout' }, finalObservation: 'after 1', reward: 0.25, success: null },
  })
})

it('says that nobody knows, if the environment does not', async () => {
  expect(await episodeOf((at) => ({ done: at === 2, truncated: 'unknown' }))).toMatchObject({
    ...{ ending: { kind: 'unknown' }, finalObservation: 'after 2' },
  })
})

it('takes the end of the last step that was allowed for what it is', async () => {
  expect(await episodeOf((at) => ({ done: at === 4 }), { maxSteps: 4 })).toMatchObject({
    ending: { kind: 'terminated' },
  })
})
