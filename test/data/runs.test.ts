import { readFileSync, writeFileSync } from 'node:fs'
import { Runners, type TaskResponse } from 'manyworlds'
import { type DataError, fromJsonl } from 'manyworlds/data'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it } from 'vitest'
import { echo } from '../agents/basics.ts'
import { storeFolder } from '../store/store-folder.ts'
import { dataFile } from './files.ts'

afterAll(() => Runners.shutdown())

type Row = { readonly n: number }
const rows = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, place) => `{"n":${from + place}}\n`).join('')
const toTask = (row: Row) => echo.task(row.n, { id: `n${row.n}` })

describe('a data set with a broken line 7,001', () => {
  it('ends the run with one error that names the line; the answers before it are there, and the run goes on once it is repaired', async () => {
    const { store } = storeFolder()
    const path = dataFile('rows.jsonl', `${rows(0, 7000)}{"n":7000\n${rows(7001, 7100)}`)
    const error: DataError & { responses?: Map<string, TaskResponse> } = await Runners.runTask(
      fromJsonl(path, toTask),
      {
        ...{ workerNum: 1, store, runId: 'r' },
      },
    ).then(
      () => expect.fail('it must not succeed'),
      (error) => error,
    )
    expect(error).toMatchObject({ name: 'ManyworldsError', code: 'DATA_INVALID', file: path, line: 7001, column: 10 })
    expect(error.message).toContain(`${path}:7001:10: not valid JSON: expected ',' or '}', found the end of the line`)
    expect(error.responses?.size).toBe(7000)
    {
      using run = RunFile.open('r', { store })
      expect(run.overview()).toMatchObject({ status: 'failed', counts: { success: 7000 } })
      expect(run.overview().error).toContain(`${path}:7001`)
    }
    writeFileSync(path, readFileSync(path, 'utf8').replace('{"n":7000\n', '{"n":7000}\n'))
    const responses = await Runners.runTask(fromJsonl(path, toTask), { workerNum: 1, store, resume: 'r' })
    expect(responses.size).toBe(7100)
    expect([...responses.values()].filter(({ restored }) => !restored)).toHaveLength(100)
  })

  it('gives streamTask all answers before the error', async () => {
    const path = dataFile('rows.jsonl', `${rows(0, 100)}nonsense\n`)
    const seen: string[] = []
    const stream = async () => {
      for await (const { id } of Runners.streamTask(fromJsonl(path, toTask), { workerNum: 1 })) seen.push(id)
    }
    await expect(stream()).rejects.toMatchObject({ code: 'DATA_INVALID', line: 101, column: 1 })
    expect(seen).toHaveLength(100)
  })
})

it('a data set that is not there is one error before anything starts', async () => {
  const { store } = storeFolder()
  const run = Runners.runTask(fromJsonl('none.jsonl', toTask), { workerNum: 1, store, runId: 'r' })
  await expect(run).rejects.toMatchObject({ code: 'DATA_UNREADABLE', message: expect.stringContaining('ENOENT') })
})
