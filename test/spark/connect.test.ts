import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  limit,
  localRelation,
  type Relation,
  readParquet,
  readTable,
  sql,
  sqlCommand,
  writeCommand,
} from '../../src/engines/spark/connect/plans.ts'
import { parseRemote, type Remote } from '../../src/engines/spark/connect/remote.ts'
import { type ConnectOptions, ConnectSession } from '../../src/engines/spark/connect/session.ts'
import { SparkError } from '../../src/engines/spark/connect/spark-error.ts'
import { testRunSpark } from '../cli/run-spark.ts'
import { makeAuthority } from '../nodes/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { type Network, startProxy } from './connect-proxy.ts'
import { startConnectServer } from './connect-server.ts'

/** What needs a Connect server, on one: the client, with a network that fails between them, and the commands. */

const server = await startConnectServer()
const { remote } = server
let folder: string
const sessions: ConnectSession[] = []
const proxies: Network[] = []

afterAll(() => server.stop(), 60_000)
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mw-connect-'))
})
afterEach(async () => {
  for (const session of sessions.splice(0)) {
    await session.release()
    session.close()
  }
  for (const proxy of proxies.splice(0)) await proxy.close()
  rmSync(folder, { recursive: true, force: true })
})

const SLOW = { timeout: 180_000 }

function open(to: Remote = remote, options: Omit<ConnectOptions, 'remote'> = {}): ConnectSession {
  const session = new ConnectSession({ remote: to, ...options })
  sessions.push(session)
  return session
}

/** A session behind a proxy that cuts connections: see `startProxy`. */
async function openBehindProxy(cutAfter?: () => number | undefined) {
  const proxy = await startProxy(remote.port, cutAfter)
  proxies.push(proxy)
  const session = open({ ...remote, port: proxy.port })
  await session.version()
  return { proxy, session }
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

async function failure(promise: Promise<unknown>): Promise<SparkError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof SparkError)) throw new Error('not a SparkError', { cause: error })
  expect(error.message).not.toContain(remote.token)
  expect(error.message).not.toMatch(/^\s*at \S+\(/m)
  return error
}

/** One row at once, and then three that take for ever: as many as there are cores. */
const oneAndThenNothing = sql(
  "SELECT id, CASE WHEN id > 0 THEN reflect('java.lang.Thread', 'sleep', 600000L) END FROM range(0, 4, 1, 4)",
)
/** Waits for a core. */
const expectCoresFree = (session: ConnectSession) => expect(all(session.rows(COUNT))).resolves.toEqual([{ n: 10 }])
const COUNT = sql('SELECT count(*) AS n FROM range(10)')

describe('the command line', () => testRunSpark(server.address))

describe('a session', () => {
  test('says which Spark it is, and keeps its own settings', async () => {
    const [one, other] = [open(), open()]
    expect(await one.version()).toMatch(/^4\.\d/)
    await one.setConfig({ 'spark.sql.shuffle.partitions': '7', 'spark.mine': 'ä=;' })
    const keys = ['spark.sql.shuffle.partitions', 'spark.mine', 'spark.nobody.has.set.it']
    expect(Object.fromEntries(await one.getConfig(keys))).toEqual({ [keys[0]!]: '7', [keys[1]!]: 'ä=;' })
    expect((await other.getConfig(keys)).get(keys[0]!)).not.toBe('7')
  })

  test('brings files, small and large, as they are', SLOW, async () => {
    const session = open()
    const files = { 'small.bin': randomBytes(100), 'large.bin': randomBytes(5_000_000), 'empty.bin': Buffer.alloc(0) }
    for (const [name, bytes] of Object.entries(files)) await session.addArtifact(`files/${name}`, bytes)
    // A second time changes nothing: a request whose answer was lost is made again.
    await session.addArtifact('files/large.bin', files['large.bin'])
    const script = `d=$\{PATH##*:}; for f in $d/NAME $d/*/NAME; do [ -f "$f" ] && cat "$f" | md5sum && wc -c < "$f"; done`
    await session.setConfig({ 'spark.sql.variable.substitute': 'false' })
    for (const [name, bytes] of Object.entries(files)) {
      const query = `SELECT TRANSFORM(id) USING '${script.replaceAll('NAME', name)}' AS (line STRING) FROM range(0, 1, 1, 1)`
      const { createHash } = await import('node:crypto')
      const md5 = createHash('md5').update(bytes).digest('hex')
      const lines = (await all(session.rows(sql(query)))).map(({ line }) => String(line))
      expect(lines).toEqual([expect.stringContaining(md5), String(bytes.byteLength)])
    }
  })

  test('that is over says so', async () => {
    const session = open()
    await session.version()
    await session.release()
    expect((await failure(session.version())).errorClass).toMatch(/INVALID_HANDLE\.SESSION_/)
    session.close()
    expect((await failure(session.version())).message).toContain('the session is closed')
  })

  test('of a server that is gone can be released all the same', async () => {
    const { session, proxy } = await openBehindProxy()
    await proxy.close()
    await session.release()
    session.close()
  })
})

describe('values', () => {
  test('there and back', async () => {
    const columns = {
      text: ['ä', null, ''],
      double: [1.5, null, Number.NaN],
      bigint: [1n, null, -(2n ** 63n)],
      boolean: [true, null, false],
      binary: [Uint8Array.of(0, 255), null, new Uint8Array()],
      nothing: [null, null, null],
    }
    expect(await all(open().rows(localRelation(columns)))).toEqual([
      { text: 'ä', double: 1.5, bigint: 1, boolean: true, binary: Uint8Array.of(0, 255), nothing: null },
      { text: null, double: null, bigint: null, boolean: null, binary: null, nothing: null },
      { text: '', double: Number.NaN, bigint: -(2n ** 63n), boolean: false, binary: new Uint8Array(), nothing: null },
    ])
  })

  test('no rows still have columns', async () => {
    const session = open()
    const empty = localRelation({ a: [], b: [] }, { b: 'double' })
    expect(await session.columns(empty)).toEqual(['a', 'b'])
    expect(await all(session.rows(empty))).toEqual([])
    expect(await all(session.rows(sql('SELECT sum(b) AS s FROM {empty}', { empty })))).toEqual([{ s: null }])
  })

  test('a column is of one type', () => {
    expect(() => localRelation({ a: [1, 'x'] })).toThrow('column "a" is double, but row 1 has a string')
    expect(() => localRelation({ a: [1], b: [] })).toThrow('the same length')
  })

  const VALUES: [sql: string, value: unknown][] = [
    ['1Y', 1],
    ['2S', 2],
    ['-3', -3],
    ['9007199254740991L', Number.MAX_SAFE_INTEGER],
    ['9007199254740993L', 9007199254740993n],
    ['1.5F', 1.5],
    ['2.5D', 2.5],
    ['-0.05BD', -0.05],
    ['CAST(12.5 AS DECIMAL(15, 4))', 12.5],
    ['CAST(12.5 AS DECIMAL(16, 4))', '12.5000'],
    ['-12345678901234567890.123BD', '-12345678901234567890.123'],
    ["'text'", 'text'],
    ['true', true],
    ["X'0102'", Uint8Array.of(1, 2)],
    ["DATE'2024-02-29'", new Date('2024-02-29T00:00:00Z')],
    ["DATE'1900-01-01'", new Date('1900-01-01T00:00:00Z')],
    ["TIMESTAMP'2024-01-01 12:30:00.123456+02:00'", new Date('2024-01-01T10:30:00.123Z')],
    ["TIMESTAMP_NTZ'2024-01-01 12:30:00'", new Date('2024-01-01T12:30:00Z')],
    ["INTERVAL '1 02:00:00' DAY TO SECOND", 26 * 3600 * 1000],
    ["INTERVAL '1-2' YEAR TO MONTH", 14],
    ['array(1L, null, 9007199254740993L)', [1, null, 9007199254740993n]],
    ['array(array(), array(1.5D))', [[], [1.5]]],
    ["named_struct('a', 1, 'b', named_struct('c', null))", { a: 1, b: { c: null } }],
    ["map('k', array(1), '__proto__', null)", JSON.parse('{"k":[1],"__proto__":null}')],
    ["map(1, 'one')", [[1, 'one']]],
    ['null', null],
  ]

  test('of every type, and the null of each', async () => {
    const session = open()
    const names = VALUES.map((_, index) => `c${index}`)
    const list = VALUES.map(([text], index) => `${text} AS c${index}`).join(', ')
    const [row] = await all(session.rows(sql(`SELECT ${list}`)))
    for (const [index, [text, value]] of VALUES.entries()) expect([text, row![names[index]!]]).toEqual([text, value])
    const nulls = VALUES.map(([text], index) => `CASE WHEN id < 0 THEN ${text} END AS c${index}`).join(', ')
    const [none] = await all(session.rows(sql(`SELECT ${nulls} FROM range(1)`)))
    expect(none).toEqual(Object.fromEntries(names.map((name) => [name, null])))
  })

  test('as arguments of a query, and rows as tables in it', async () => {
    const session = open()
    const people = localRelation({ name: ['Ann', 'Bob'], age: [30n, 40n] })
    const query =
      'SELECT name, :text AS text, :none AS none, :yes AS yes FROM {people} WHERE age > :age AND 1.5 = :half'
    const args = { text: "it's; {people}", none: null, yes: true, age: 30n, half: 1.5 }
    const expected = [{ name: 'Bob', text: "it's; {people}", none: null, yes: true }]
    const queries = Array.from({ length: 8 }, () => all(session.rows(sql(query, { people }, args))))
    for (const rows of await Promise.all(queries)) expect(rows).toEqual(expected)
  })

  test('in files and tables', async () => {
    const session = open()
    const rows = localRelation({ id: [1n, 2n, 3n], kind: ['a', 'b', 'a'] })
    const [path, table] = [join(folder, 'rows.parquet'), 'people_of_connect_test']
    const ids = async (from: Relation) => (await all(session.rows(from))).map(({ id }) => id).sort()
    await session.run(writeCommand({ relation: rows, to: { parquet: path }, partitionBy: ['kind'] }))
    expect(await ids(readParquet(path))).toEqual([1, 2, 3])
    expect(await ids(readParquet([join(path, 'kind=b')]))).toEqual([2])
    expect(await ids(limit(readParquet(path), 2))).toHaveLength(2)
    const again = await failure(session.run(writeCommand({ relation: rows, to: { parquet: path } })))
    expect(again.errorClass).toBe('PATH_ALREADY_EXISTS')
    await session.run(writeCommand({ relation: rows, to: { parquet: path }, mode: 'append', partitionBy: ['kind'] }))
    expect(await ids(readParquet(path))).toHaveLength(6)
    const where = { path: join(folder, 'table') }
    await session.run(
      writeCommand({ relation: rows, to: { table }, mode: 'overwrite', format: 'json', options: where }),
    )
    await session.run(sqlCommand(`INSERT INTO ${table} SELECT id + 10, kind FROM {rows}`, { rows }))
    expect(await ids(readTable(table))).toEqual([1, 11, 12, 13, 2, 3])
    await session.run(sqlCommand(`DROP TABLE ${table}`))
  })
})

describe('a network that fails', () => {
  test('every row once and in order, though its connection is cut again and again', SLOW, async () => {
    const CUTS = 15
    let cuts = 0
    // The first is for the version. A batch is about 50 kB: each connection brings a few.
    const { session, proxy } = await openBehindProxy(() => (cuts++ < CUTS ? 300_000 : undefined))
    await session.setConfig({ 'spark.sql.execution.arrow.maxRecordsPerBatch': '1000' })
    let next = 0
    for await (const { id, text } of session.rows(sql("SELECT id, repeat('x', 40) AS text FROM range(200000)"))) {
      if (id !== next || (text as string).length !== 40)
        expect({ id, text }).toEqual({ id: next, text: 'x'.repeat(40) })
      next++
    }
    expect(next).toBe(200_000)
    expect(proxy.connections).toBeGreaterThan(10)
  })

  test('an operation that is quiet for long, over streams that the server ends', SLOW, async () => {
    const { session, proxy } = await openBehindProxy()
    const seen: number[] = []
    const cutting = setInterval(() => proxy.cut(), 1500)
    try {
      const slow = sql("SELECT id, reflect('java.lang.Thread', 'sleep', 2500L) FROM range(0, 6, 1, 6)")
      const rows = await all(session.rows(slow, { onProgress: ({ completed }) => void seen.push(completed) }))
      expect(rows.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4, 5])
    } finally {
      clearInterval(cutting)
    }
    expect(Math.max(...seen)).toBeGreaterThanOrEqual(3)
    expect(proxy.connections).toBeGreaterThan(2)
  })

  test('a request that never arrived is made again', async () => {
    const { session, proxy } = await openBehindProxy()
    proxy.refuse(true)
    proxy.cut()
    setTimeout(() => proxy.refuse(false), 400)
    expect(await all(session.rows(COUNT))).toEqual([{ n: 10 }])
  })

  test('single calls survive it', async () => {
    const { session, proxy } = await openBehindProxy()
    proxy.cut()
    await session.setConfig({ 'spark.mine': '1' })
    proxy.refuse(true)
    proxy.cut()
    setTimeout(() => proxy.refuse(false), 400)
    expect((await session.getConfig(['spark.mine'])).get('spark.mine')).toBe('1')
    const upload = session.addArtifact('files/cut.bin', randomBytes(3_000_000))
    setTimeout(() => proxy.cut(), 5)
    await upload
    expect(proxy.connections).toBeGreaterThanOrEqual(3)
  })

  // A Spark in one process may lose a large result by itself (TaskResultLost), and tries nothing again there.
  test('slow readers are not sent everything, and do not hold up others', { ...SLOW, retry: 2 }, async () => {
    const { session, proxy } = await openBehindProxy()
    const large = sql('SELECT id, repeat(cast(id AS STRING), 200) AS text FROM range(0, 100000, 1, 3)')
    const before = proxy.bytes
    const readers = [1, 2, 3].map(() => session.execute(large))
    const firsts = await Promise.all(readers.map(async (batches) => (await batches.next()).value!.byteLength))
    let sent: number
    do {
      sent = proxy.bytes
      await new Promise((resolve) => setTimeout(resolve, 1000))
    } while (proxy.bytes > sent)
    // What is on its way to each: a batch of 4 MB or so and the window of HTTP/2; and the buffers of the sockets.
    expect(sent - before).toBeLessThan(40_000_000)
    expect(await all(session.rows(COUNT))).toEqual([{ n: 10 }])
    let size = firsts[0]!
    for await (const batch of readers[0]!) size += batch.byteLength
    expect(size).toBeGreaterThan(90_000_000)
    for (const reader of readers.slice(1)) await reader.return(undefined)
  })
})

describe('stopping', () => {
  test('an operation is interrupted by its id', async () => {
    const session = open()
    let id: string | undefined
    const interrupts: Promise<unknown>[] = []
    const waiting = all(session.rows(oneAndThenNothing, { onStarted: (its) => (id = its), onProgress: stop }))
    function stop() {
      interrupts.push(session.interrupt(id))
    }
    expect((await failure(waiting)).errorClass).toBe('OPERATION_CANCELED')
    // None is under way when the session is closed.
    await Promise.all(interrupts)
    await expectCoresFree(session)
  })

  test('those with a tag, and all of them', async () => {
    const session = open()
    const start = async (tags: string[], first: () => void) => {
      for await (const _ of session.rows(oneAndThenNothing, { tags })) first()
    }
    for (const what of [{ tag: 'mine' }, undefined]) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const waiting = failure(start(['mine'], resolve))
      await promise
      await session.interrupt({ tag: 'other' })
      await session.interrupt(what)
      expect((await waiting).errorClass).toBe('OPERATION_CANCELED')
    }
    await expectCoresFree(session)
  })

  test('who stops reading stops the operation', async () => {
    const session = open()
    for await (const row of session.rows(oneAndThenNothing)) {
      expect(row).toMatchObject({ id: 0 })
      break
    }
    await expectCoresFree(session)
  })

  test('a signal does too', async () => {
    const session = open()
    const stop = new AbortController()
    const reading = (async () => {
      for await (const _ of session.rows(oneAndThenNothing, { signal: stop.signal })) stop.abort(new Error('enough'))
    })()
    await expect(reading).rejects.toThrow('enough')
    await expectCoresFree(session)
  })

  test('an idle session does not keep a program alive, nor a busy one that is told not to', async () => {
    const module = (name: string) =>
      JSON.stringify(new URL(`../../src/engines/spark/connect/${name}.ts`, import.meta.url).href)
    const program = (busy: string) => `
      import { ConnectSession } from ${module('session')}
      import { sql } from ${module('plans')}
      const session = new ConnectSession({ remote: ${JSON.stringify(remote)} })
      await session.version()
      ${busy}
      process.stdout.write('last words')`
    const busy = `
      session.keepAlive(false)
      const waiting = session.run(sql("SELECT reflect('java.lang.Thread', 'sleep', 600000L) FROM range(1)"))
      await new Promise((resolve) => setTimeout(resolve, 1000))`
    for (const more of ['', busy]) {
      const child = spawn(process.execPath, ['--input-type=module', '-e', program(more)], {
        stdio: ['ignore', 'pipe', 2],
      })
      const output = await all(child.stdout!.setEncoding('utf8') as AsyncIterable<string>)
      expect(output.join('')).toBe('last words')
    }
  })
})

describe('mistakes', () => {
  test('in a query', async () => {
    const session = open()
    const syntax = await failure(session.run(sql('SELEC 1')))
    expect(syntax).toMatchObject({ code: 'SPARK_FAILED', errorClass: 'PARSE_SYNTAX_ERROR', sqlState: '42601' })
    expect(syntax.message).toMatch(/^\[PARSE_SYNTAX_ERROR\] Syntax error at or near 'SELEC'/)
    const missing = await failure(session.run(readTable('no_such_table')))
    expect(missing).toMatchObject({ errorClass: 'TABLE_OR_VIEW_NOT_FOUND', sqlState: '42P01' })
    expect(missing.message).toContain('`no_such_table`')
    const late = await failure(all(session.rows(sql('SELECT 1 / (id - 99) FROM range(0, 100, 1, 4)'))))
    expect(late.errorClass).toBe('DIVIDE_BY_ZERO')
    expect((await failure(session.columns(readTable('no_such_table')))).errorClass).toBe('TABLE_OR_VIEW_NOT_FOUND')
  })

  test('of a program: what it wrote to its stderr is there', async () => {
    const program = 'echo "it is broken" >&2; echo "    at main (file:///x.js:1:2)" >&2; exit 3'
    const error = await failure(open().run(sql(`SELECT TRANSFORM(id) USING '${program}' AS (x STRING) FROM range(1)`)))
    const words = [error.message, ...error.causes].join('\n')
    expect(words).toContain('status 3')
    expect(words).toContain('it is broken\n    at main (file:///x.js:1:2)')
  })

  test('a setting that cannot be set', async () => {
    expect((await failure(open().setConfig({ 'spark.driver.memory': '1g' }))).errorClass).toBe('CANNOT_MODIFY_CONFIG')
  })

  test('no token, and a wrong one', async () => {
    const { token: _, ...without } = remote
    for (const [to, what] of [
      [without, 'it wants a token'],
      [{ ...remote, token: 'wrong-token' }, 'does not accept our token'],
    ] as const) {
      const session = open(to)
      for (const error of [await failure(session.version()), await failure(session.run(COUNT))]) {
        expect(error).toMatchObject({ grpcCode: 16, message: expect.stringContaining(what) })
        expect(error.message).toContain(';token=')
        expect(error.message).not.toContain('wrong-token')
      }
    }
  })

  test('nobody listens', async () => {
    const port = await freePort()
    const session = open({ ...remote, port })
    for (const error of [await failure(session.version()), await failure(session.run(COUNT))])
      expect(error.message).toBe(`Spark at sc://127.0.0.1:${port}: nothing listens there (ECONNREFUSED)`)
    const nowhere = open(parseRemote('sc://no-such-machine.invalid'))
    expect((await failure(nowhere.version())).message).toContain('host not found')
  })

  test('TLS where there is none, and none where there is', async () => {
    const secure = await failure(open({ ...remote, useSsl: true }).version())
    expect(secure.message).toContain('does not speak TLS; set use_ssl=false')
    const { port, ca, close } = await startTlsProxy()
    try {
      const plain = await failure(open({ ...remote, port }).version())
      expect(plain.message).toContain('if it needs TLS, set use_ssl=true')
      const here = { ...remote, port, host: 'localhost', useSsl: true }
      expect((await failure(open(here).version())).message).toMatch(/not trusted.*spark\.remoteTls\.ca/)
      expect(await open(here, { tls: { ca } }).version()).toMatch(/^4/)
      const elsewhere = { ...here, host: '127.0.0.1' }
      expect((await failure(open(elsewhere, { tls: { ca } }).version())).message).toContain('remoteTls.serverName')
      expect(await open(elsewhere, { tls: { ca, serverName: 'localhost' } }).version()).toMatch(/^4/)
    } finally {
      await close()
    }
  })

  test('something that is no Spark', async () => {
    const other = createServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as { port: number }
    expect((await failure(open({ ...remote, port }).version())).message).toContain(
      'ended the connection without an answer',
    )
    other.close()
  })
})

/** TLS in front of the server, for the name `localhost`. */
async function startTlsProxy() {
  const proxy = await startProxy(remote.port)
  proxies.push(proxy)
  const authority = await makeAuthority(folder, 'them')
  const { cert, key } = await authority.sign('localhost')
  const { connect } = await import('node:net')
  const tls = createTlsServer({ cert: readFileSync(cert), key: readFileSync(key), ALPNProtocols: ['h2'] }, (client) => {
    const upstream = connect(proxy.port, '127.0.0.1')
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.pipe(upstream).pipe(client)
  })
  tls.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => tls.listen(0, resolve))
  const { port } = tls.address() as { port: number }
  return { port, ca: readFileSync(authority.path), close: async () => void tls.close() }
}
