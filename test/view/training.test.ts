import { Runners } from 'manyworlds'
import { afterAll, describe, expect, it } from 'vitest'
import { packTexts } from '../../src/train/prompts/texts.ts'
import type { LiveEvent, RunDetails, RunList, TrainingDetails } from '../../src/view/api.ts'
import { sampleTraining } from '../store/sample-training.ts'
import { storeFolder } from '../store/store-folder.ts'
import { served } from './served.ts'

afterAll(() => Runners.shutdown())

describe('a training', () => {
  it('is listed without its runs, and shown with them', async () => {
    const { store } = storeFolder()
    await sampleTraining(store, { id: 'desk', updates: 3, withRuns: true })
    const { get, error } = await served(store)
    const list = await get<RunList>('/api/runs')
    expect(list).toMatchObject({ runs: [], trainings: [{ id: 'desk', status: 'finished', updates: 3 }] })
    const details = await get<TrainingDetails>('/api/training?training=desk')
    expect(details).toMatchObject({ overview: { id: 'desk' }, config: { rollouts: 8 } })
    expect(details.updates).toHaveLength(3)
    expect(details.updates[0]).toMatchObject({ members: expect.any(Number), report: expect.any(Object) })
    expect(details.versions.length).toBeGreaterThan(3)
    expect(details.evaluations.length).toBeGreaterThan(0)
    expect(details.texts).toBeUndefined()
    expect(details.runs.length).toBeGreaterThan(0)
    const run = await get<RunDetails>(`/api/run?run=${details.runs[0]}`)
    expect(run).toMatchObject({ training: 'desk', overview: { runId: details.runs[0] } })
    expect(await error('/api/run?run=desk')).toMatchObject({ status: 404 })
  })

  it('of prompts has the texts of its versions', async () => {
    const { store } = storeFolder()
    const weights = (version: number) => packTexts({ instructions: `Be brief, version ${version}.` })
    await sampleTraining(store, { id: 'prompts', updates: 2, weights })
    const { get } = await served(store)
    const { texts } = await get<TrainingDetails>('/api/training?training=prompts')
    expect(texts!.at(-1)).toEqual({ version: 2, text: 'Be brief, version 2.' })
  })

  it('is sent again when it has changed', async () => {
    const { store } = storeFolder()
    await sampleTraining(store, { id: 'live', updates: 1 })
    const { events } = await served(store)
    const reader = events('/api/events?training=live')
    const seen = () =>
      reader.events.flatMap((event: LiveEvent) => (event.kind === 'training' ? [event.details.overview.runs] : []))
    await expect.poll(seen).toEqual([0])
    const { echo } = await import('../agents/basics.ts')
    await Runners.runTask(echo.task('x', { id: 'a' }), { store, runId: 'live.u00009', workerNum: 1 })
    await expect.poll(seen).toEqual([0, 1])
  })
})
