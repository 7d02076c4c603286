import http from 'node:http'
import https from 'node:https'
import { brotliDecompressSync, gunzipSync, inflateSync, type ZlibOptions } from 'node:zlib'

export interface HttpCall {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
  /** From the start of the call to the last byte of the reply. */
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

export interface HttpReply extends Replied {
  readonly body: string
}

/** A reply whose body is no text. */
export interface BytesReply extends Replied {
  readonly body: Buffer
}

interface Replied {
  readonly status: number
  /** Those that matter here, in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** It is the reply to the second try: the connection of the first was closed. Left out: to the first. */
  readonly again?: number
}

/** The call came to nothing before there was a whole reply. */
export class HttpFailure extends Error {
  readonly timedOut: boolean

  constructor(message: string, timedOut: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'HttpFailure'
    this.timedOut = timedOut
  }
}

const MOST_BYTES = 64 * 1024 * 1024
const AGENT = { keepAlive: true, maxSockets: 1024, scheduling: 'lifo' } as const
const agents = { http: new http.Agent(AGENT), https: new https.Agent(AGENT) }

/** How often that is tried anew at once. After that it is a failure like others, and waits for its turn. */
const MOST_STALE = 1

/**
 * Posts a body and reads the whole reply. `node:http` takes half the time of `fetch`, and says more clearly what went wrong. Rejects with
 * `HttpFailure`, or with the reason of the signal.
 */
export async function post(call: HttpCall): Promise<HttpReply> {
  const reply = await postForBytes(call)
  return { ...reply, body: reply.body.toString('utf8') }
}

/** The same for a reply that may be binary. */
export async function postForBytes(call: HttpCall): Promise<BytesReply> {
  for (let stale = 0; ; stale++) {
    try {
      const reply = await postOnce(call)
      return stale > 0 ? { ...reply, again: stale } : reply
    } catch (error) {
      // The server closed an idle connection, most likely at the moment in which it was used.
      if (!(error instanceof StaleConnection)) throw error
      if (stale >= MOST_STALE) throw new HttpFailure(error.message, false, error.cause)
    }
  }
}

class StaleConnection extends Error {}

function postOnce({ url, headers, body, timeoutMs, signal }: HttpCall): Promise<BytesReply> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const { protocol } = new URL(url)
    const [lib, agent] = protocol === 'https:' ? [https, agents.https] : [http, agents.http]
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const request = lib.request(url, {
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json', ...headers, 'content-length': bytes.length },
    })
    let over = false
    let answered = false
    const end = (settle: () => void) => {
      if (over) return
      over = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      settle()
    }
    const fail = (error: unknown) => end(() => reject(error))
    const timer = setTimeout(() => {
      fail(new HttpFailure(`no whole reply within ${timeoutMs} ms`, true))
      request.destroy()
    }, timeoutMs)
    const onAbort = () => {
      fail(signal!.reason)
      request.destroy()
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    request.once('error', (error: NodeJS.ErrnoException) =>
      fail(
        request.reusedSocket && !answered && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
          ? new StaleConnection(error.message, { cause: error })
          : new HttpFailure(`${error.code ?? error.name}: ${error.message}`, false, error),
      ),
    )
    request.once('response', (response) => {
      answered = true
      const parts: Buffer[] = []
      let size = 0
      response.on('data', (part: Buffer) => {
        parts.push(part)
        size += part.length
        if (size <= MOST_BYTES) return
        fail(new HttpFailure(`the reply has more than ${MOST_BYTES} bytes`, false))
        request.destroy()
      })
      response.once('error', (error) =>
        fail(new HttpFailure(`the reply was cut short: ${error.message}`, false, error)),
      )
      response.once('close', () => {
        if (!response.complete) fail(new HttpFailure('the reply was cut short', false))
      })
      response.once('end', () => {
        if (!response.complete) return
        const { statusCode, headers } = response
        try {
          const body = unpacked(parts, headers['content-encoding'])
          end(() => resolve({ status: statusCode!, headers: wanted(headers), body }))
        } catch (error) {
          fail(new HttpFailure(`the reply cannot be unpacked: ${(error as Error).message}`, false, error))
        }
      })
    })
    request.end(bytes)
  })
}

/** We ask for none of them; some proxies compress regardless, and `headers` of a model may ask. */
const UNPACKERS: Readonly<Record<string, (bytes: Buffer, options: ZlibOptions) => Buffer>> = {
  ...{ gzip: gunzipSync, 'x-gzip': gunzipSync, deflate: inflateSync, br: brotliDecompressSync },
}

function unpacked(parts: readonly Buffer[], encoding = 'identity'): Buffer {
  const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
  const unpack = UNPACKERS[encoding.toLowerCase()]
  return unpack ? unpack(bytes, { maxOutputLength: MOST_BYTES }) : bytes
}

const WANTED = ['content-type', 'location', 'retry-after', 'retry-after-ms', 'x-request-id'] as const

function wanted(headers: http.IncomingHttpHeaders): HttpReply['headers'] {
  const found: Record<string, string> = {}
  for (const name of WANTED) {
    const value = headers[name]
    if (typeof value === 'string') found[name] = value
  }
  return found
}
