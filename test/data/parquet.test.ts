import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { fromParquet } from 'manyworlds/data'
import { describe, expect, it } from 'vitest'
import { type ParquetLimits, readParquet } from '../../src/data/parquet-thread.ts'
import { dataFile, toArray } from './files.ts'

const fixture = (name: string) => fileURLToPath(new URL(`fixtures/${name}.parquet`, import.meta.url))

describe('fromParquet reads', () => {
  it.each(['snappy', 'gzip', 'brotli', 'zstd', 'none'])('what pyarrow writes with %s', async (codec) => {
    const rows = await toArray(fromParquet(fixture(`pyarrow-${codec}`)))
    expect(rows.map(({ id }) => id)).toEqual(['q0', 'q1', 'q2', 'q3', 'q4'])
    expect(rows[1]).toEqual({
      id: 'q1',
      n: 1,
      big: 2n ** 60n + 1n,
      x: 1 / 3,
      ok: false,
      at: new Date('1970-01-01T23:59:59.999Z'),
      price: 0.3,
      tags: [],
      nested: { a: 1, b: ['x', null] },
      raw: Uint8Array.of(255, 0),
      text: '\ufeffé𝄞',
    })
    expect(rows[0]).toMatchObject({ at: new Date('1969-12-31T23:59:59.999Z') })
    expect(rows[3]).toMatchObject({ n: null })
    expect(rows[2]).toMatchObject({ tags: null })
  })

  it('only the columns that are named, for a mapping function that is told the row', async () => {
    const read = fromParquet(fixture('pyarrow-zstd'), (row: object, { line }) => [line, row], { columns: ['n'] })
    expect((await toArray(read)).slice(2, 4)).toEqual([
      [3, { n: 2 }],
      [4, { n: null }],
    ])
  })

  it('a file of many row groups one group at a time', async () => {
    const bytes = parquetWriteBuffer({
      columnData: [{ name: 'n', data: Array.from({ length: 10_000 }, (_, n) => n), type: 'INT32' }],
      rowGroupSize: 100,
    })
    let sum = 0
    for await (const { n } of fromParquet<{ n: number }>(dataFile('n.parquet', new Uint8Array(bytes)))) {
      sum += n
      if (n === 4999) break
    }
    expect(sum).toBe((4999 * 5000) / 2)
  })
})

describe('fromParquet refuses', () => {
  const refused = (path: string, options: object, message: RegExp, code = 'DATA_INVALID') =>
    expect(toArray(fromParquet(path, options))).rejects.toMatchObject({ code, message: expect.stringMatching(message) })

  it('what it would read wrongly', async () => {
    await refused(fixture('decimal'), {}, /column 'd' is a DECIMAL of 30 digits, which cannot be read exactly/)
    expect(await toArray(fromParquet(fixture('decimal'), { columns: ['a'] }))).toEqual([{ a: 1 }])
    await refused(fixture('pyarrow-lz4'), {}, /:1: .*unsupported compression codec: LZ4_RAW/)
  })

  it('what is no Parquet file, is damaged, or has no such column', async () => {
    await refused(dataFile('a.parquet', 'id,question\n'.repeat(10)), {}, /not a Parquet file/)
    await refused(dataFile('b.parquet', ''), {}, /not a Parquet file/)
    await refused(fixture('decimal'), { columns: ['b'] }, /no column 'b'; the columns are d, a/)
    await refused('none.parquet', {}, /^none.parquet: .*ENOENT/, 'DATA_UNREADABLE')
    const bytes = new Uint8Array(parquetWriteBuffer({ columnData: [{ name: 't', data: ['a'.repeat(100), 'b'] }] }))
    bytes.fill(7, 4, 40)
    await refused(dataFile('c.parquet', bytes), {}, /:1: cannot read the row group that starts here/)
  })

  it('addresses, and options that it does not know', () => {
    expect(() => fromParquet('https://host/a.parquet')).toThrow(/download the file first/)
    expect(() => fromParquet('a.parquet', { column: ['a'] } as object)).toThrow(/did you mean 'columns'\?/)
  })
})

describe('a Parquet file that is damaged', () => {
  // Two columns fail at once, and the library handles the rejection of one of them only: that ended the process.
  it.each<[string, [at: number, value: number][]]>([
    [
      'none',
      [
        [419, 0],
        [3998, 64],
        [3032, 0],
      ],
    ],
    [
      'gzip',
      [
        [1412, 0],
        [6348, 0],
      ],
    ],
    [
      'gzip',
      [
        [7064, 0],
        [7352, 0],
        [5912, 0],
      ],
    ],
    [
      'zstd',
      [
        [3840, 0],
        [1549, 128],
        [3633, 0],
      ],
    ],
  ])('in several columns (%s) is refused, and the program goes on', async (codec, flips) => {
    const bytes = Buffer.from(readFileSync(fixture(`pyarrow-${codec}`)))
    for (const [at, value] of flips) bytes[at] = value
    await expect(toArray(fromParquet(dataFile('damaged.parquet', bytes)))).rejects.toMatchObject({
      code: 'DATA_INVALID',
    })
  })

  it('can neither take all memory nor run for ever', async () => {
    const data = Array.from({ length: 100_000 }, (_, n) => `a text of its own, number ${n}`)
    const bytes = parquetWriteBuffer({ columnData: [{ name: 's', data, type: 'STRING' }], rowGroupSize: 100_000 })
    const request = {
      path: dataFile('large.parquet', new Uint8Array(bytes)),
      file: 'large.parquet',
      columns: undefined,
    }
    const read = (limits: Partial<ParquetLimits>) =>
      toArray(readParquet(request, { ms: 60_000, msPerMb: 1000, heapMb: 512, ...limits }))
    expect((await read({})).flatMap((rows) => [...rows])).toHaveLength(100_000)
    const refused = (why: string) => ({ code: 'DATA_INVALID', message: expect.stringContaining(why) })
    await expect(read({ heapMb: 8 })).rejects.toMatchObject(refused('it needs too much memory'))
    await expect(read({ ms: 1, msPerMb: 0 })).rejects.toMatchObject(refused('it took longer than 0 s'))
  })
})
