import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { type GaiaOptions, gaiaTasks } from 'manyworlds/grade'
import { afterAll, describe, expect, expectTypeOf, it } from 'vitest'
import { echo } from '../agents/basics.ts'

const folder = mkdtempSync(join(tmpdir(), 'gaia-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function written(content: string): string {
  const path = join(folder, `${files++}.jsonl`)
  writeFileSync(path, content)
  return path
}

const row = (changes: object = {}) => ({
  task_id: 'c61d22de',
  Question: 'How many studio albums were published?',
  Level: 1,
  'Final answer': '3',
  file_name: '',
  'Annotator Metadata': {
    Steps: '1. I searched. 2. The answer is 3.',
    'Number of steps': '4 steps',
    'How long did this take?': '5 minutes',
    Tools: '1. Web browser',
    'Number of tools': '2',
  },
  ...changes,
})
const jsonl = (...rows: object[]) => rows.map((one) => JSON.stringify(one)).join('\n')
const all = (path: string, options?: GaiaOptions) => collect(gaiaTasks(path, options))

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

describe('the tasks of GAIA', () => {
  it('are read from its JSONL file', async () => {
    const path = written(jsonl(row(), row({ task_id: 'b', Level: '2', file_name: 'b.xlsx', 'Final answer': 17 })))
    expect(await all(path)).toEqual([
      {
        id: 'c61d22de',
        input: { instruction: 'How many studio albums were published?' },
        groundTruth: '3',
        metadata: { level: 1, steps: 4, tools: 2 },
      },
      {
        id: 'b',
        input: { instruction: 'How many studio albums were published?', file: join(folder, 'b.xlsx') },
        groundTruth: '17',
        metadata: { level: 2, fileName: 'b.xlsx', steps: 4, tools: 2 },
      },
    ])
  })

  it('hold nothing of the annotator’s solution but the ground truth', async () => {
    const [task] = await all(written(jsonl(row({ 'Final answer': 'heron' }))))
    const { groundTruth, ...seenByAgents } = task!
    expect(groundTruth).toBe('heron')
    expect(JSON.stringify(seenByAgents)).not.toMatch(/heron|searched|browser|The answer/)
  })

  it('have no ground truth in the test split', async () => {
    const rows = [row({ 'Final answer': '?' }), row({ 'Final answer': undefined, 'Annotator Metadata': null })]
    for (const task of await all(written(jsonl(...rows)))) expect(task).not.toHaveProperty('groundTruth')
  })

  it('can be chosen by level, get an agent, and have their files elsewhere', async () => {
    const path = written(jsonl(row(), row({ task_id: 'b', Level: 2, file_name: 'b.png' })))
    const tasks = await collect(gaiaTasks(path, { agent: echo, level: 2, files: '/data' }))
    expect(tasks).toMatchObject([{ id: 'b', agent: echo, input: { file: '/data/b.png' } }])
    expectTypeOf(tasks[0]!.agent).toEqualTypeOf(echo)
  })

  it('can be run as they come', async () => {
    const path = written(jsonl(row(), row({ task_id: 'b' })))
    const responses = await collect(Runners.streamTask(gaiaTasks(path, { agent: echo }), { workerNum: 1 }))
    expect(responses.map(({ id, answer }) => [id, answer]).toSorted()).toEqual([
      ['b', { instruction: 'How many studio albums were published?' }],
      ['c61d22de', { instruction: 'How many studio albums were published?' }],
    ])
  })

  it('survive byte order marks, empty lines, Windows line ends, and a last line without one', async () => {
    const path = written(`\ufeff${JSON.stringify(row())}\r\n\r\n  \n${JSON.stringify(row({ task_id: 'é\u2028' }))}`)
    expect((await all(path)).map(({ id }) => id)).toEqual(['c61d22de', 'é\u2028'])
  })

  it('are read one by one: a mistake further down does not hold up what is above', async () => {
    const rows = Array.from({ length: 7000 }, (_, at) => row({ task_id: `t${at}` }))
    const path = written(`${jsonl(...rows)}\n{"task_id": "broken`)
    const seen: string[] = []
    const reading = (async () => {
      for await (const { id } of gaiaTasks(path)) seen.push(id)
    })()
    await expect(reading).rejects.toMatchObject({
      code: 'DATA_INVALID',
      line: 7001,
      message: expect.stringContaining('.jsonl:7001'),
    })
    expect(seen).toHaveLength(7000)
  })

  it.each<[object, string]>([
    [{ task_id: 5 }, '`task_id`: must be text; is this the metadata.jsonl of GAIA?'],
    [{ Question: ' ' }, '`Question`: must be text'],
    [{ Level: 4 }, '`Level`: must be 1, 2 or 3'],
    [{ Level: undefined }, '`Level`: must be 1, 2 or 3'],
    [{ 'Final answer': {} }, '`Final answer`: must be text or a number'],
    [{ file_name: '../../etc/passwd' }, '`file_name`: must be a plain file name'],
    [{ file_name: '..' }, '`file_name`: must be'],
    [{ file_name: 7 }, '`file_name`: must be'],
  ])('are refused with the line: %j', async (changes, message) => {
    await expect(all(written(jsonl(row(), row(changes))))).rejects.toMatchObject({
      code: 'DATA_INVALID',
      line: 2,
      message: expect.stringContaining(message),
    })
  })

  it('are refused where there is no file, or another one', async () => {
    await expect(all(join(folder, 'none.jsonl'))).rejects.toMatchObject({ code: 'DATA_UNREADABLE' })
    await expect(all(folder)).rejects.toMatchObject({ code: 'DATA_UNREADABLE' })
    for (const content of ['null', '5', '[]', '"x"', 'x,y,z'])
      await expect(all(written(content))).rejects.toMatchObject({ code: 'DATA_INVALID', line: 1 })
  })
})
