import { DatabaseSync } from 'node:sqlite'
import { Runners } from 'manyworlds'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { asker } from '../agents/models.ts'
import { type ModelServer, startModelServer } from '../models/scripted-server.ts'
import { storeFolder } from '../store/store-folder.ts'
import { expectStoreWithout } from './found-in.ts'

const KEY = 'sk-test-0a1b2c3d4e5f6g7h8i9j'
const VARIABLE = 'TEST_VENDOR_KEY'

let server: ModelServer
beforeAll(async () => {
  process.env[VARIABLE] = KEY
  server = await startModelServer({ seed: 1 })
})
afterAll(async () => {
  delete process.env[VARIABLE]
  await Runners.shutdown()
  await server.close()
})

it.each(['driver', 'direct'] as const)(
  'a key in a message goes to the model, and not into the run file (%s)',
  async (via) => {
    const { store, file } = storeFolder()
    const small = {
      baseURL: server.baseURL,
      model: 'echo',
      apiKeyEnv: VARIABLE,
      via,
      tokens: true,
    }
    const ask = (id: string, prompt: string) => asker.task({ model: 'small', prompt }, { id })
    const tasks = [ask('leaks', `${via}: is ${KEY} a good key?`), ask('innocent', `${via}: what is a good key?`)]
    const responses = await Runners.runTask(tasks, { store, runId: 'r', models: { small } })
    const steps = ['leaks', 'innocent'].map(
      (id) => responses.get(id)!.trajectory.find((step) => step.kind === 'model')!,
    )
    expect(responses.get('leaks')!.status, String(responses.get('leaks')!.error)).toBe('success')
    expect(steps.map(({ redacted }) => redacted)).toEqual([true, undefined])
    expect(steps[0]).toMatchObject({
      tokens: null,
      request: { added: [{ content: `${via}: is [redacted] a good key?` }] },
    })
    expect(JSON.stringify(await server.requests())).toContain(`${via}: is ${KEY} a good key?`)
    await expectStoreWithout([KEY], file('r'), 'r')
    // A rerun gets the answer of the one that has no secret.
    using db = new DatabaseSync(file('r'), { readOnly: true })
    const [stored] = db
      .prepare("SELECT count(*) AS count FROM answers WHERE service IN ('manyworlds.model', 'manyworlds.direct')")
      .all()
    expect(stored).toEqual({ count: 1 })
  },
)

it('an answer with a key in it is not cached: the call is made again', async () => {
  const { store, file } = storeFolder()
  const small = { baseURL: server.baseURL, model: 'echo', apiKeyEnv: VARIABLE }
  const prompts = { leaks: `cached: is ${KEY} a good key?`, innocent: 'cached: what is a good key?' }
  for (const runId of ['first', 'second']) {
    const tasks = Object.entries(prompts).map(([id, prompt]) => asker.task({ model: 'small', prompt }, { id }))
    const responses = await Runners.runTask(tasks, { store, runId, models: { small }, cache: true })
    expect([...responses.values()].map(({ status }) => status)).toEqual(['success', 'success'])
    await expectStoreWithout([KEY], file(runId), runId)
  }
  expect(await server.requests({ body: 'cached: is' })).toHaveLength(2)
  expect(await server.requests({ body: 'cached: what' })).toHaveLength(1)
})
