import { createReadStream } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pathToFileURL } from 'node:url'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { fromJsonl } from 'manyworlds/data'
import { describe, expect, it, onTestFinished } from 'vitest'
import * as z from 'zod/mini'
import { openBytes } from '../../src/data/open-bytes.ts'
import { dataFile, dataFolder, pieces, saidOnStderr, toArray } from './files.ts'

const lines = (rows: readonly unknown[], end = '\n') => rows.map((row) => JSON.stringify(row) + end).join('')

describe('fromJsonl reads', () => {
  it('every row, whatever its text and however the bytes come', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue()),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
        fc.constantFrom('\n', '\r\n', '\n\n', ' \r\n\t\n'),
        fc.boolean(),
        async (rows, sizes, end, mark) => {
          const text = `${mark ? '\ufeff' : ''}${lines(rows, end)}`
          const read = await toArray(fromJsonl(pieces(text, sizes)))
          expect(read).toEqual(JSON.parse(JSON.stringify(rows)))
        },
      ),
    )
  })

  it('a last line without an end, an empty file, and a file of empty lines', async () => {
    const file = dataFolder()
    expect(await toArray(fromJsonl(file('a.jsonl', '1\n2')))).toEqual([1, 2])
    expect(await toArray(fromJsonl(file('b.jsonl', '')))).toEqual([])
    expect(await toArray(fromJsonl(file('c.jsonl', '\n\r\n \n')))).toEqual([])
    expect(await toArray(fromJsonl(file('d.jsonl', '1')))).toEqual([1])
  })

  it('compressed files, whatever they are called, as one piece or several', async () => {
    const file = dataFolder()
    const text = lines(Array.from({ length: 5000 }, (_, n) => ({ n, text: 'x'.repeat(n % 100) })))
    const halves = [text.slice(0, 70_000), text.slice(70_000)]
    for (const bytes of [gzipSync(text), zstdCompressSync(text), Buffer.concat(halves.map((half) => gzipSync(half)))])
      expect(await toArray(fromJsonl(file('rows.data', bytes)))).toHaveLength(5000)
  })

  it('file: addresses, streams, and what a server sends', async () => {
    const path = dataFile('rows.jsonl', '1\n2\n')
    expect(await toArray(fromJsonl(pathToFileURL(path)))).toEqual([1, 2])
    expect(await toArray(fromJsonl(createReadStream(path)))).toEqual([1, 2])
    expect(await toArray(fromJsonl(new Blob(['1\n2\n']).stream()))).toEqual([1, 2])
    const server = createServer((request, response) => {
      if (request.url?.startsWith('/rows.jsonl')) response.end(gzipSync('1\n2\n'))
      else response.writeHead(404).end()
    }).listen(0)
    onTestFinished(() => void server.close())
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    expect(await toArray(fromJsonl(`${at}/rows.jsonl`))).toEqual([1, 2])
    await expect(toArray(fromJsonl(new URL(`${at}/none.jsonl?key=secret`)))).rejects.toMatchObject({
      code: 'DATA_UNREADABLE',
      message: `${at}/none.jsonl: cannot be read: HTTP 404 Not Found`,
    })
  })

  it('a server that falls silent no longer than it must', async () => {
    const server = createServer((_request, response) => void response.writeHead(200).write('1\n2\n')).listen(0)
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}/rows.jsonl`
    const never = new AbortController().signal
    await expect(toArray(openBytes(at, at, never, 300))).rejects.toMatchObject({
      code: 'DATA_UNREADABLE',
      message: `${at}: cannot be read: the server sent nothing for 0.3 s`,
    })
    // Whoever leaves, leaves at once, although the next row has been asked for.
    const rows = fromJsonl(at)[Symbol.asyncIterator]()
    expect(await rows.next()).toEqual({ done: false, value: 1 })
    await rows.next()
    const next = rows.next().catch((error: unknown) => error)
    const began = performance.now()
    await rows.return?.()
    await next
    // A server may be silent for 60 s.
    expect(performance.now() - began).toBeLessThan(30_000)
  })

  it('the same file again in each iteration, but a stream once', async () => {
    const rows = fromJsonl(dataFile('rows.jsonl', '1\n2\n'))
    expect(await toArray(rows)).toEqual([1, 2])
    expect(await toArray(rows)).toEqual([1, 2])
    const stream = fromJsonl(pieces('1\n', [1]))
    expect(await toArray(stream)).toEqual([1])
    await expect(toArray(stream)).rejects.toMatchObject({
      code: 'DATA_UNREADABLE',
      message: expect.stringMatching(/read only once/),
    })
  })

  it('no further than it is asked to', async () => {
    let given = 0
    async function* endless() {
      for (;;) yield Buffer.from(`${JSON.stringify({ n: given++ })}\n`)
    }
    for await (const row of fromJsonl<{ n: number }>(endless())) if (row.n === 10) break
    expect(given).toBeLessThan(20)
  })
})

describe('fromJsonl maps', () => {
  it('rows, with the line on which each stands, and leaves out undefined', async () => {
    const path = dataFile('rows.jsonl', '{"q":"a"}\n\n{"q":"b"}\n{"q":"c"}\n')
    const mapped = fromJsonl(path, (row: { q: string }, { line, file }) =>
      row.q === 'b' ? undefined : [row.q, line, file],
    )
    expect(await toArray(mapped)).toEqual([
      ['a', 1, path],
      ['c', 4, path],
    ])
  })

  it('names the line if the function throws, also where bad rows are skipped', async () => {
    const path = dataFile('rows.jsonl', '{"a":{"b":1}}\n{}\n')
    const mapped = fromJsonl(path, (row: { a: { b: number } }) => row.a.b, { onBadRow: 'skip' })
    await expect(toArray(mapped)).rejects.toMatchObject({
      code: 'DATA_INVALID',
      line: 2,
      message: expect.stringContaining(`${path}:2: the mapping function threw: Cannot read properties of undefined`),
      cause: expect.any(TypeError),
    })
  })

  it('checks rows against a schema, which may convert them', async () => {
    const schema = z.object({ q: z.string(), n: z.coerce.number() })
    const path = dataFile('rows.jsonl', '{"q":"a","n":"1"}\n{"q":2}\n')
    const read: unknown[] = []
    const run = async () => {
      for await (const row of fromJsonl(path, (row) => row.n + 1, { schema })) read.push(row)
    }
    await expect(run()).rejects.toMatchObject({
      code: 'DATA_INVALID',
      line: 2,
      message: expect.stringMatching(/`q`: .*; `n`: /),
    })
    expect(read).toEqual([2])
  })
})

describe('a bad row', () => {
  it('of line 7,001 is an error that names line 7001 and the column; the rows before it came first', async () => {
    const good = Array.from({ length: 7000 }, (_, n) => ({ n, text: 'two\nlines' }))
    const path = dataFile('rows.jsonl', `${lines(good)}{"n": 7000, "text": tow}\n${lines(good)}`)
    let read = 0
    const run = async () => {
      for await (const _ of fromJsonl(path)) read++
    }
    await expect(run()).rejects.toMatchObject({
      name: 'ManyworldsError',
      code: 'DATA_INVALID',
      ...{ file: path, line: 7001, column: 21 },
      message: `${path}:7001:21: not valid JSON: expected a value, found "t"; fix the row, or skip bad rows with onBadRow: 'skip'`,
      cause: expect.any(SyntaxError),
    })
    expect(read).toBe(7000)
  })

  it.each<[what: string, line: string | Uint8Array, problem: RegExp, column?: number]>([
    ['a missing comma', '{"a":1 "b":2}', /expected ',' or '}', found "\\""/, 8],
    ['a comma too much', '{"a":1,}', /expected a key in double quotes, found "}"/, 8],
    ['two values', '{} {}', /expected the end of the line, found "{"/, 4],
    ['half of a row', '{"a":[1,2', /expected ',' or ']', found the end of the line/, 10],
    ['single quotes', "{'a':1}", /a key in double quotes or '}', found "'"/, 2],
    ['no colon', '{"a" 1}', /expected ':'/, 6],
    ['a text without an end', '{"a":"bc}', /the text that starts at column 6 has no closing quote/, 10],
    ['a control character', '{"a":"b\tc"}', /"\\t" inside a text must be escaped/, 8],
    ['a wrong escape', '{"a":"b\\xc"}', /"\\\\x" is not an escape sequence/, 8],
    ['what Python writes', '{"a": NaN}', /found NaN, which is not valid in JSON/, 7],
    ['bytes that are no text', Buffer.from('{"a":"\xff"}', 'latin1'), /is not valid UTF-8/],
  ])('is told apart: %s', async (_what, line, problem, column) => {
    saidOnStderr()
    const bytes = Buffer.concat([Buffer.from('1\n'), Buffer.from(line as string), Buffer.from('\n2\n')])
    const path = dataFile('rows.jsonl', bytes)
    await expect(toArray(fromJsonl(path))).rejects.toMatchObject({
      code: 'DATA_INVALID',
      line: 2,
      column,
      message: expect.stringMatching(problem),
    })
    expect(await toArray(fromJsonl(path, { onBadRow: 'skip' }))).toEqual([1, 2])
  })

  it('has its place found wherever JSON.parse fails, and nowhere else', () => {
    const damaged = fc.tuple(
      fc.json(),
      fc.nat(),
      fc.constantFrom('', '"', '{', '}', ',', ':', '1', 'x', '\\', '[', '-'),
    )
    return fc.assert(
      fc.asyncProperty(damaged, async ([json, place, insert]) => {
        const at = place % (json.length + 1)
        const line = json.slice(0, at) + insert + json.slice(at + 1)
        const isJson = (() => {
          try {
            JSON.parse(line)
            return true
          } catch {
            return false
          }
        })()
        const read = toArray(fromJsonl(pieces(line, [1000])))
        if (isJson || line.trim() === '') await read
        else await expect(read).rejects.toMatchObject({ line: 1, column: expect.any(Number) })
      }),
      { numRuns: 1000 },
    )
  })

  it('can be skipped: they are counted, and said once', async () => {
    const said = saidOnStderr()
    const path = dataFile('rows.jsonl', '1\noops\n2\n{"a"}\n3\n')
    const rows = fromJsonl(path, { onBadRow: 'skip' })
    expect(await toArray(rows)).toEqual([1, 2, 3])
    expect(rows.skipped).toBe(2)
    expect(said).toEqual([
      `manyworlds: ${path}: skipped 2 bad rows; the first is at ${path}:2:1: not valid JSON: expected a value, found "o"\n`,
    ])
  })

  it('that is too long is refused without being held in memory, and can be skipped', async () => {
    saidOnStderr()
    async function* long() {
      yield Buffer.from('1\n"')
      for (let mb = 0; mb < 300; mb++) yield Buffer.alloc(1_000_000, 'x')
      yield Buffer.from('"\n2\n')
    }
    const before = process.memoryUsage()
    await expect(toArray(fromJsonl(long()))).rejects.toMatchObject({
      ...{ code: 'DATA_INVALID', line: 2 },
      message: expect.stringMatching(/the row has 300000002 bytes, more than maxRowBytes \(67108864\)/),
    })
    expect(await toArray(fromJsonl(long(), { onBadRow: 'skip', maxRowBytes: 1000 }))).toEqual([1, 2])
    const { rss } = process.memoryUsage()
    expect(rss - before.rss).toBeLessThan(250_000_000)
  })
})

describe('what is no JSONL', () => {
  it.each<[what: string, content: string | Uint8Array, problem: RegExp]>([
    ['a file in UTF-16', Buffer.from('\ufeff{"a":1}\n', 'utf16le'), /UTF-16; convert it to UTF-8/],
    ['a Parquet file', 'PAR1....', /read it with fromParquet/],
    ['a zip file', 'PK\x03\x04....', /zip file; unpack it first/],
    ['half of a compressed file', gzipSync(lines([1, 2, 3])).subarray(0, 15), /cannot be decompressed: unexpected end/],
    ['a damaged one', Buffer.concat([gzipSync('1').subarray(0, 10), Buffer.alloc(50, 7)]), /cannot be decompressed/],
  ])('is said to be %s', async (_what, content, problem) => {
    const path = dataFile('rows.jsonl', content)
    await expect(toArray(fromJsonl(path))).rejects.toMatchObject({
      code: 'DATA_INVALID',
      file: path,
      message: expect.stringMatching(problem),
    })
  })

  it('is not there, or is a folder, or a stream of something else', async () => {
    const folder = dataFile('rows.jsonl', '').replace(/\/rows.jsonl$/, '')
    const refused = { code: 'DATA_UNREADABLE' }
    await expect(toArray(fromJsonl('none.jsonl'))).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/^none.jsonl: .*ENOENT/),
    })
    await expect(toArray(fromJsonl(folder))).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/EISDIR/),
    })
    const numbers = (async function* () {
      yield 1
    })() as unknown as AsyncIterable<string>
    await expect(toArray(fromJsonl(numbers, { name: 'mine' }))).rejects.toMatchObject({
      ...refused,
      message: 'mine: cannot be read: the stream returned number instead of bytes or text',
    })
    await expect(toArray(fromJsonl('http://127.0.0.1:1/x.jsonl'))).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/^http:\/\/127.0.0.1:1\/x.jsonl: cannot be read: fetch failed: .*/),
    })
  })
})

it('options and sources that are wrong are refused at once', () => {
  const call = fromJsonl as unknown as (...values: unknown[]) => unknown
  expect(() => call('a.jsonl', { onBadrow: 'skip' })).toThrow(/unknown option 'onBadrow', did you mean 'onBadRow'\?/)
  expect(() => call('a.jsonl', { onBadRow: 'ignore' })).toThrow(/`onBadRow` must be 'throw' or 'skip', it is 'ignore'/)
  expect(() => call('a.jsonl', (row: unknown) => row, { maxRowBytes: 0 })).toThrow(
    /`maxRowBytes` must be a whole number/,
  )
  expect(() => call('a.jsonl', 'map')).toThrow(/options must be an object/)
  expect(() => call('a.jsonl', { schema: {} })).toThrow(/`schema` must be a schema/)
  expect(() => call('')).toThrow(/give a path/)
  expect(() => call(undefined)).toThrow(/give a path/)
  expect(() => call(new URL('ftp://host/a.jsonl'))).toThrow(/file:, http: or https:/)
})
