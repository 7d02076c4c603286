import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { fromCsv } from 'manyworlds/data'
import { describe, expect, it } from 'vitest'
import * as z from 'zod/mini'
import { dataFile, pieces, saidOnStderr, toArray } from './files.ts'

/** A table as RFC 4180 has it; `always`: quotes around every field. */
function csv(table: readonly (readonly string[])[], delimiter: string, end: string, always: boolean): string {
  const field = (text: string) =>
    always || text === '' || /["\r\n]/.test(text) || text.includes(delimiter) ? `"${text.replaceAll('"', '""')}"` : text
  return table.map((row) => row.map(field).join(delimiter) + end).join('')
}

describe('fromCsv reads', () => {
  it('every table that RFC 4180 can write, however the bytes come', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', ' ', '"', ',', ';', '\n', '\r\n', 'é', '𝄞', '\t', "'", '0') })
    const table = fc
      .integer({ min: 1, max: 5 })
      .chain((width) => fc.array(fc.array(text, { minLength: width, maxLength: width }), { minLength: 1 }))
    await fc.assert(
      fc.asyncProperty(
        table,
        fc.constantFrom(',', ';', '\t', '|'),
        fc.constantFrom('\n', '\r\n'),
        fc.boolean(),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
        async (rows, delimiter, end, always, sizes) => {
          const columns = rows[0]!.map((_, place) => `c${place}`)
          const source = pieces(csv(rows, delimiter, end, always), sizes)
          const read = await toArray(fromCsv(source, { delimiter, columns }))
          expect(read.map((row) => columns.map((name) => row[name]))).toEqual(rows)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('the header, a byte order mark, CR LF, empty lines, a last line without an end', async () => {
    const path = dataFile('rows.csv', '\ufeffid,question\r\n\r\n1,"What, me?"\r\n2,\r\n"","say ""hi"""')
    expect(await toArray(fromCsv(path))).toEqual([
      { id: '1', question: 'What, me?' },
      { id: '2', question: '' },
      { id: '', question: 'say "hi"' },
    ])
    expect(await toArray(fromCsv(dataFile('rows.csv.gz', gzipSync('a;b\n1;2\n')), { delimiter: ';' }))).toEqual([
      { a: '1', b: '2' },
    ])
    expect(await toArray(fromCsv(dataFile('empty.csv', '')))).toEqual([])
    expect(await toArray(fromCsv(dataFile('header.csv', 'a,b\n')))).toEqual([])
  })

  it('columns with odd names as they are', async () => {
    const [row] = await toArray(fromCsv(dataFile('rows.csv', '__proto__,constructor,\n1,2,3\n')))
    expect(Object.entries(row!)).toEqual([
      ['__proto__', '1'],
      ['constructor', '2'],
      ['', '3'],
    ])
    expect(Object.getPrototypeOf(row)).toBe(Object.prototype)
  })

  it('rows for a mapping function, with the line on which each begins, and a schema that converts', async () => {
    const path = dataFile('rows.csv', 'q,n\n"two\nlines",1\nb,2\n')
    const mapped = fromCsv(path, (row, { line }) => [row.q, row.n, line], {
      schema: z.object({ q: z.string(), n: z.coerce.number() }),
    })
    expect(await toArray(mapped)).toEqual([
      ['two\nlines', 1, 2],
      ['b', 2, 4],
    ])
  })
})

describe('a bad row', () => {
  it('names the line of the file, also behind fields of many lines', async () => {
    const good = Array.from({ length: 3500 }, (_, n) => `${n},"two\nlines"\n`).join('')
    const path = dataFile('rows.csv', `n,text\n${good}1,2,3\n${good}`)
    await expect(toArray(fromCsv(path))).rejects.toMatchObject({
      ...{ code: 'DATA_INVALID', file: path, line: 7002 },
      message: `${path}:7002: the row has 3 fields, but there are 2 columns ("n,text"); fix the row, or skip bad rows with onBadRow: 'skip'`,
    })
  })

  it.each<[what: string, row: string | Uint8Array, line: number, column: number | undefined, problem: RegExp]>([
    ['too few fields', 'x', 2, undefined, /the row has 1 field, but there are 2 columns/],
    ['a quote inside a field', 'é,5" pipe', 2, 4, /a quote inside an unquoted field/],
    ['text behind a closing quote', '"a"b,c', 2, 4, /text after the closing quote/],
    ['the same in the second line of a field', '"a\nb","c"d', 3, 7, /text after the closing quote/],
    ['a carriage return alone', 'a\rb,c', 2, 2, /a carriage return without a line feed/],
    ['bytes that are no text', Buffer.from('a,\xff', 'latin1'), 2, undefined, /is not valid UTF-8/],
  ])('is told apart: %s', async (_what, row, line, column, problem) => {
    const bytes = Buffer.concat([Buffer.from('a,b\n'), Buffer.from(row as string), Buffer.from('\n1,2\n')])
    const path = dataFile('rows.csv', bytes)
    await expect(toArray(fromCsv(path))).rejects.toMatchObject({
      ...{ code: 'DATA_INVALID', line, column },
      message: expect.stringMatching(problem),
    })
    saidOnStderr()
    const rows = fromCsv(path, { onBadRow: 'skip' })
    expect(await toArray(rows)).toEqual([{ a: '1', b: '2' }])
    expect(rows.skipped).toBe(1)
  })

  it.each([
    [
      'a quote that is not closed',
      'a,b\n1,2\n3,"4\n5,6\n',
      3,
      /a quoted field that starts in this row has no closing quote/,
    ],
    ['two columns of one name', 'a,a\n1,2\n', 1, /the header has two columns named "a"/],
    ['a header that cannot be read', 'a,b"c\n1,2\n', 1, /a quote inside an unquoted field/],
  ])(
    'that leaves nothing to go on with is an error also where bad rows are skipped: %s',
    async (_what, text, line, problem) => {
      await expect(toArray(fromCsv(dataFile('rows.csv', text), { onBadRow: 'skip' }))).rejects.toMatchObject({
        ...{ code: 'DATA_INVALID', line },
        message: expect.stringMatching(problem),
      })
    },
  )

  it('that is too long is refused without being held in memory', async () => {
    saidOnStderr()
    async function* long(quote: string) {
      yield Buffer.from(`a,b\n1,2\n3,${quote}`)
      for (let mb = 0; mb < 300; mb++) yield Buffer.alloc(1_000_000, 'x')
      yield Buffer.from(`${quote}\n5,6\n`)
    }
    const before = process.memoryUsage()
    await expect(toArray(fromCsv(long('')))).rejects.toMatchObject({
      ...{ code: 'DATA_INVALID', line: 3 },
      message: expect.stringContaining('300000002 bytes, more than maxRowBytes (67108864)'),
    })
    await expect(toArray(fromCsv(long('"')))).rejects.toMatchObject({
      ...{ code: 'DATA_INVALID', line: 3 },
      message: expect.stringContaining('its closing quote is probably missing'),
    })
    const skipping = fromCsv(long(''), { onBadRow: 'skip', maxRowBytes: 100 })
    expect((await toArray(skipping)).map(({ a }) => a)).toEqual(['1', '5'])
    expect(process.memoryUsage().rss - before.rss).toBeLessThan(250_000_000)
  })
})

it('options that are wrong are refused at once', () => {
  const call = (options: object) => () => fromCsv('a.csv', options)
  for (const delimiter of ['', ',,', '"', 'a', '\n', 'é'])
    expect(call({ delimiter })).toThrow(/`delimiter` must be one/)
  for (const columns of [[], ['a', 'a'], [1], 'a,b']) expect(call({ columns })).toThrow(/`columns` must be a list/)
  expect(call({ header: true })).toThrow(/unknown option 'header'/)
})
