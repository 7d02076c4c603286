import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { HttpFailure, type HttpReply, MAX_REPLY_BYTES, post } from '../../dist/models/http.js'

/** The HTTP client of model calls against servers that are sockets: they send what they please. */

type Serve = (socket: Socket, request: string, nth: number) => void

interface RawServer {
  readonly url: string
  /** All that came, request by request. */
  readonly requests: string[]
  readonly connections: () => number
}

/** `serve` is called for each whole request; `nth` counts those of all connections, from 0. */
async function serving(serve: Serve): Promise<RawServer> {
  const requests: string[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  const server = net.createServer((socket) => {
    connections++
    sockets.add(socket)
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) return
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
      if (text.length < end + 4 + length) return
      const request = text.slice(0, end + 4 + length)
      text = text.slice(request.length)
      requests.push(request)
      serve(socket, request, requests.length - 1)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    connections: () => connections,
  }
}

const call = (url: string, more: Partial<Parameters<typeof post>[0]> = {}): Promise<HttpReply> =>
  post({ url, headers: {}, body: '{"a":"ü"}', timeoutMs: 30_000, signal: undefined, ...more })

const whole = (body: string | Buffer, headers = '', status = '200 OK') =>
  Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${headers}\r\n`),
    Buffer.from(body),
  ])

async function failure(replied: Promise<HttpReply>): Promise<HttpFailure> {
  const error: unknown = await replied.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(HttpFailure)
  return error as HttpFailure
}

describe('a reply', () => {
  test('comes with its status, its body and the headers that matter', async () => {
    const { url, requests } = await serving((socket) =>
      socket.write(whole('wörds ✓', 'Retry-After: 3\r\nX-Secret: s\r\nContent-Type: text/plain\r\n', '418 Teapot')),
    )
    expect(await call(url, { headers: { authorization: 'Bearer k' } })).toEqual({
      ...{ status: 418, body: 'wörds ✓', headers: { 'retry-after': '3', 'content-type': 'text/plain' } },
    })
    expect(requests[0]).toMatch(/^POST \/v1 HTTP\/1\.1\r\n/)
    expect(requests[0]).toMatch(/^authorization: Bearer k\r$/m)
    expect(requests[0]).toMatch(/^content-type: application\/json\r$/m)
    expect(Buffer.from(requests[0]!.split('\r\n\r\n')[1]!, 'latin1').toString()).toBe('{"a":"ü"}')
  })

  test('may come in chunks, and in drips that cut characters apart', async () => {
    const { url } = await serving(async (socket) => {
      const bytes = Buffer.from('{"text":"🙂🙂"}')
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
      for (const byte of bytes) {
        socket.write(Buffer.concat([Buffer.from('1\r\n'), Buffer.from([byte]), Buffer.from('\r\n')]))
        await sleep(5)
      }
      socket.write('0\r\n\r\n')
    })
    expect((await call(url)).body).toBe('{"text":"🙂🙂"}')
  })

  test('may have no length, and end with the connection', async () => {
    const { url } = await serving((socket) => socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall of it'))
    expect((await call(url)).body).toBe('all of it')
  })

  test('is not asked for in a compressed form, and read if it comes in one', async () => {
    const packed = { gzip: gzipSync('words'), br: brotliCompressSync('words'), deflate: deflateSync('words') }
    const { url, requests } = await serving((socket, _, nth) => {
      const [name, bytes] = Object.entries(packed)[nth]!
      socket.write(whole(bytes, `content-encoding: ${name}\r\n`))
    })
    for (const _ of Object.keys(packed)) expect((await call(url)).body).toBe('words')
    expect(requests.join('')).not.toMatch(/accept-encoding/i)
  })

  test('that is compressed and broken, or a bomb, is a failure', async () => {
    const bomb = gzipSync(Buffer.alloc(MAX_REPLY_BYTES + 1))
    const { url } = await serving((socket, _, nth) =>
      socket.write(whole(nth === 0 ? gzipSync('words').subarray(0, 10) : bomb, 'content-encoding: gzip\r\n')),
    )
    expect((await failure(call(url))).message).toContain('cannot be decompressed')
    expect((await failure(call(url))).message).toContain('larger than 16 MB')
  })

  test('that sends us elsewhere is not followed', async () => {
    const { url, requests } = await serving((socket) =>
      socket.write(whole('', 'location: http://127.0.0.1:1/other\r\n', '307 Temporary Redirect')),
    )
    const { status, headers } = await call(url)
    expect([status, headers.location, requests.length]).toEqual([307, 'http://127.0.0.1:1/other', 1])
  })

  test('of 16 MB is read, one of more is not, and reading stops there', async () => {
    const part = Buffer.alloc(1024 * 1024, 'x')
    let sent = 0
    let stopped = () => {}
    const { url } = await serving(async (socket, _, nth) => {
      const parts = nth === 0 ? 16 : 400
      // The last one does not say how much it is.
      const length = nth < 2 ? `content-length: ${parts * part.length}\r\n` : 'connection: close\r\n'
      socket.write(`HTTP/1.1 200 OK\r\n${length}\r\n`)
      sent = 0
      for (; sent < parts && !socket.destroyed; sent++) if (!socket.write(part)) await sleep(1)
      stopped()
    })
    expect((await call(url)).body.length).toBe(MAX_REPLY_BYTES)
    for (const most of [8, 64]) {
      const over = new Promise<void>((resolve) => (stopped = resolve))
      expect((await failure(call(url))).message).toBe('the reply is larger than 16 MB, the most that is read')
      await over
      expect(sent).toBeLessThan(most)
    }
  })
})

describe('a failure', () => {
  test.each<[string, Serve, RegExp]>([
    ['closed before any header', (socket) => socket.end(), /socket hang up/],
    ['reset before any header', (socket) => socket.resetAndDestroy(), /ECONNRESET/],
    ['closed inside the headers', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-le'), /./],
    [
      'closed inside the body',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf'),
      /closed before the reply was complete/,
    ],
    [
      'closed inside a chunk',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf'),
      /closed before the reply was complete/,
    ],
    [
      'closed before the last chunk',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n'),
      /closed before the reply was complete/,
    ],
    ['no HTTP at all', (socket) => socket.end('hello\r\n\r\n'), /HPE_INVALID|Parse/],
  ])('%s', async (_, serve, words) => {
    const { url, requests } = await serving(serve)
    const { message, timedOut } = await failure(call(url))
    expect(message).toMatch(words)
    expect([timedOut, requests.length]).toEqual([false, 1])
  })

  test('nobody there', async () => {
    // Not a port that was free a moment ago: another test may have it by now.
    expect((await failure(call('http://127.0.0.1:9/v1'))).message).toContain('ECONNREFUSED')
  })

  test.each<[string, Serve]>([
    ['nothing comes', () => {}],
    ['headers come, and nothing more', (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n')],
    [
      'a byte comes now and then',
      (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n')
        const drip = setInterval(() => socket.write('x'), 20)
        socket.on('close', () => clearInterval(drip))
      },
    ],
  ])('%s: the call is cut when its time is over, and its connection closed', async (_, serve) => {
    let closed: Promise<unknown> | undefined
    const { url } = await serving((socket, request, nth) => {
      // Not `once` of node:events, which rejects if the connection is reset.
      closed = new Promise((resolve) => socket.once('close', resolve))
      socket.on('error', () => {})
      serve(socket, request, nth)
    })
    const began = performance.now()
    expect(await failure(call(url, { timeoutMs: 300 }))).toMatchObject({ timedOut: true })
    expect(performance.now() - began).toBeGreaterThanOrEqual(290)
    await closed
  })

  test('a call that is taken back ends with the reason, and closes its connection', async () => {
    const heard = Promise.withResolvers<Socket>()
    const { url } = await serving((socket) => heard.resolve(socket))
    const controller = new AbortController()
    const replied = call(url, { signal: controller.signal })
    const closed = once(await heard.promise, 'close')
    controller.abort(new Error('taken back'))
    await expect(replied).rejects.toThrow('taken back')
    await closed
    await expect(call(url, { signal: controller.signal })).rejects.toThrow('taken back')
  })
})

describe('connections', () => {
  test('are used again', async () => {
    const { url, connections } = await serving((socket) => socket.write(whole('ok')))
    for (let nth = 0; nth < 5; nth++) await call(url)
    expect(connections()).toBe(1)
  })

  test('one that the server closed while it was idle costs nothing: the call is made on another', async () => {
    const { url, requests, connections } = await serving((socket, _, nth) => {
      // The second request finds a connection that is closed at this moment.
      if (nth === 1) socket.resetAndDestroy()
      else socket.write(whole(`reply ${nth}`))
    })
    expect((await call(url)).body).toBe('reply 0')
    expect(await call(url)).toMatchObject({ body: 'reply 2', again: 1 })
    expect([requests.length, connections()]).toEqual([3, 2])
  })

  test('one that breaks inside a reply is a failure, also if it was used before', async () => {
    const { url, requests } = await serving((socket, _, nth) => {
      if (nth === 0) {
        socket.write(whole('ok'))
        return
      }
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf', () =>
        setTimeout(() => socket.resetAndDestroy(), 50),
      )
    })
    await call(url)
    expect((await failure(call(url))).message).toMatch(/closed before the reply was complete|ECONNRESET/)
    expect(requests.length).toBe(2)
  })

  test('a server that always does that is a failure, after one more try', async () => {
    const { url, requests } = await serving((socket, _, nth) => {
      if (nth === 0) socket.write(whole('ok'))
      else socket.resetAndDestroy()
    })
    await call(url)
    expect((await failure(call(url))).timedOut).toBe(false)
    expect(requests.length).toBe(3)
  })
})
