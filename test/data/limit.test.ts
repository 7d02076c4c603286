import { DistributedExecutor, Runners, type TaskLike } from 'manyworlds'
import { fromJsonl, sample } from 'manyworlds/data'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it } from 'vitest'
import { echo } from '../agents/basics.ts'
import { ledger } from '../agents/ledger.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { project, script } from '../cli/project.ts'
import { storeFolder } from '../store/store-folder.ts'
import { dataFile, toArray } from './files.ts'

afterAll(() => Runners.shutdown())

const quick = { workerNum: 1, store: false } as const
const named = Array.from({ length: 300 }, (_, n) => echo.task(n, { id: `t${n}` }))
const unnamed = Array.from({ length: 300 }, (_, n) => echo.task(n))
function* generated(tasks: readonly TaskLike<typeof echo>[]) {
  // One object, changed and given again, as a careful generator may do.
  const task = { ...tasks[0]! }
  for (const next of tasks) yield Object.assign(task, next)
}
async function* later(tasks: readonly TaskLike<typeof echo>[]) {
  for (const task of tasks) yield task
}
const idsOf = (responses: ReadonlyMap<string, unknown>) => [...responses.keys()]

describe('a run with a limit', () => {
  it('takes the sample that `sample` takes, from an array, an iterable and an async iterable alike', async () => {
    const config = { ...quick, limit: 20, sampleSeed: 1 }
    const wanted = (await toArray(sample(named, { limit: 20, seed: 1 }))).map(({ id }) => id)
    expect(wanted).toHaveLength(20)
    for (const tasks of [named, named.toReversed(), generated(named), later(named)] as (typeof named)[]) {
      const responses = await Runners.runTask(tasks, config)
      expect(idsOf(responses).toSorted()).toEqual(wanted.toSorted())
      for (const [id, { answer }] of responses) expect(`t${answer}`).toBe(id)
    }
    const places = idsOf(await Runners.runTask(unnamed, config))
    expect(places).toEqual(idsOf(await Runners.runTask(generated(unnamed), config)))
    // In their order, under the names that they have without a limit.
    expect(places.map((id) => Number(id.slice(1)))).toEqual(
      places.map((id) => Number(id.slice(1))).toSorted((a, b) => a - b),
    )
    expect(new Set(places).size).toBe(20)
  })

  it('uses the seed of the run, and contains smaller samples', async () => {
    const take = async (config: object) => idsOf(await Runners.runTask(named, { ...quick, ...config }))
    const five = await take({ limit: 5, seed: 7 })
    expect(await take({ limit: 5, sampleSeed: 7 })).toEqual(five)
    expect(await take({ limit: 5, seed: 8 })).not.toEqual(five)
    expect(await take({ limit: 10, seed: 7 })).toEqual(expect.arrayContaining(five))
    expect(await take({ limit: 1000 })).toHaveLength(300)
  })

  it('takes tasks, and then runs each of them as often as there are rollouts', async () => {
    const { store } = storeFolder()
    const five = idsOf(await Runners.runTask(named, { ...quick, limit: 5, seed: 7 }))
    const config = { workerNum: 1, store, limit: 5, seed: 7 }
    const rolled = await Runners.runTask(generated(named), { ...config, rollouts: 3, runId: 'r' })
    expect(idsOf(rolled)).toEqual(five.flatMap((id) => [id, `${id}@2`, `${id}@3`]))
    {
      using run = RunFile.open('r', { store })
      expect(run.overview()).toMatchObject({ total: 15, sample: { limit: 5, seed: 7, of: 900 } })
    }
    const more = await Runners.runTask(generated(named), { ...config, rollouts: 4, resume: 'r' })
    expect([...more.values()].filter(({ restored }) => !restored).map(({ id }) => id)).toEqual(
      five.map((id) => `${id}@4`),
    )
  })

  it('is resumed with the same sample, and refused with another', async () => {
    const folder = storeFolder()
    const { store } = folder
    const path = dataFile('rows.jsonl', Array.from({ length: 500 }, (_, n) => `${n}\n`).join(''))
    const tasks = () => fromJsonl(path, (n: number) => ledger.task({ ledger: folder.ledger, ms: 5 }, { id: `t${n}` }))
    const config = { workerNum: 1, concurrency: 1, limit: 12, seed: 3 }
    let seen = 0
    for await (const _ of Runners.streamTask(tasks(), { ...config, store, runId: 'r' })) if (++seen === 4) break
    const begun = folder.ran()
    folder.forget()
    const responses = await Runners.runTask(tasks(), { ...config, store, resume: 'r' })
    expect(responses.size).toBe(12)
    expect([...responses.values()].filter(({ restored }) => restored).length).toBeGreaterThanOrEqual(4)
    expect(new Set([...begun, ...folder.ran()])).toEqual(new Set(responses.keys()))
    {
      using run = RunFile.open('r', { store })
      expect(run.overview()).toMatchObject({ total: 12, sample: { limit: 12, seed: 3, of: 500 } })
    }
    const refused = (other: object, words: string) =>
      expect(Runners.runTask(tasks(), { workerNum: 1, seed: 3, store, resume: 'r', ...other })).rejects.toMatchObject({
        code: 'RESUME_MISMATCH',
        message: expect.stringContaining(words),
      })
    folder.forget()
    await refused({}, 'has limit 12 and sampleSeed 3, and this call has no limit')
    await refused({ limit: 13 }, 'this call has limit 13 and sampleSeed 3')
    await refused({ limit: 12, sampleSeed: 4 }, 'this call has limit 12 and sampleSeed 4')
    await Runners.runTask(named.slice(0, 3), { workerNum: 1, store, runId: 'whole' })
    const whole = Runners.runTask(named.slice(0, 3), { workerNum: 1, store, resume: 'whole', limit: 2 })
    await expect(whole).rejects.toMatchObject({
      message: expect.stringContaining('has no limit, and this call has limit 2'),
    })
    expect(folder.ran()).toEqual([])
  })

  it('is refused for tasks that need each other, and for an executor', async () => {
    const refused = (run: Promise<unknown>, words: RegExp) =>
      expect(run).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(words) })
    await refused(
      Runners.runTask(named, { ...quick, limit: 2, sequenceDependent: true }),
      /the run is `sequenceDependent`/,
    )
    const graph = [echo.task(1, { id: 'a' }), echo.task(2, { id: 'b', dependsOn: ['a'] })]
    await refused(Runners.runTask(graph, { ...quick, limit: 1 }), /task 'b' has `dependsOn`/)
    await refused(Runners.runTask(named, { ...quick, limit: 0 }), /`limit` must be at least 1/)
    const executor = new DistributedExecutor({ ...quick, limit: 2 })
    executor.submitTask(echo.task(1))
    await refused(executor.collectResults(), /`limit` needs all tasks at once/)
    await executor.shutdown()
  })

  it('reads no further, and starts nothing, once it is cancelled', async () => {
    const stop = new AbortController()
    let given = 0
    function* endless() {
      for (;;) {
        if (++given === 5000) stop.abort(new Error('enough'))
        yield echo.task(given)
      }
    }
    await expect(Runners.runTask(endless(), { ...quick, limit: 2, signal: stop.signal })).rejects.toMatchObject({
      code: 'SOURCE_FAILED',
      message: expect.stringContaining('cancelled while its tasks were read'),
      cause: expect.objectContaining({ message: 'enough' }),
    })
    expect(given).toBeLessThan(7000)
  })

  it('passes on what its source throws, before anything starts', async () => {
    const path = dataFile('rows.jsonl', '1\n2\noops\n')
    const run = Runners.runTask(
      fromJsonl(path, (n: number) => echo.task(n)),
      { ...quick, limit: 1 },
    )
    await expect(run).rejects.toMatchObject({ code: 'DATA_INVALID', line: 3 })
  })
})

describe('manyworlds run --limit', () => {
  it('says that it is a sample: at the start, in the summary, in show and in JSON', async () => {
    const { options, path } = project({ 'many.ts': script(40, 1) })
    const ended = await manyworlds(['run', 'many.ts', '--run-id', 'r', '--limit', '6', '--seed', '1'], options)
    expect(ended).toMatchObject({ code: 0, stdout: 'the script got 6\n' })
    expect(ended.stderr).toMatch(/\[r\] started: 6 tasks, sampled from 40, on local/)
    expect(ended.stderr).toMatch(/^run r finished in [\d:]+: 6 tasks, sampled from 40/m)
    expect((await manyworlds(['show', 'r'], options)).stdout).toMatch(
      /^run r finished in [\d:]+: 6 tasks, sampled from 40/,
    )
    const again = await manyworlds(
      ['run', 'many.ts', '--resume', 'r', '--limit', '6', '--seed', '1', '--json'],
      options,
    )
    const events = again.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events.find(({ type }) => type === 'start')).toMatchObject({ total: 6, sampledFrom: 40, resumed: true })
    expect(events.find(({ type }) => type === 'summary')).toMatchObject({ done: 6, restored: 6, sampledFrom: 40 })
    const forgotten = await manyworlds(['run', 'many.ts', '--resume', 'r', '--seed', '1'], options)
    expect(forgotten).toMatchObject({ code: 2, stderr: expect.stringContaining('has limit 6 and sampleSeed 1') })
    expect(RunFile.list({ store: path('.manyworlds/runs') })).toEqual(['r'])
    const alone = await manyworlds(['run', 'many.ts', '--sample-seed', '1'], options)
    expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining('--limit') })
  })
})
