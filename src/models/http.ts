import type { Agent, IncomingHttpHeaders } from 'node:http'

export interface HttpCall {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
  /** From the start of the call to the last byte of the reply. */
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
  /** The call fails as soon as the reply is larger. Default: `MAX_REPLY_BYTES`. */
  readonly maxBytes?: number
}

export interface HttpReply extends Replied {
  readonly body: string
}

/** A reply with a binary body. */
export interface BytesReply extends Replied {
  readonly body: Buffer
}

interface Replied {
  readonly status: number
  /** Selected headers, in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The number of repetitions on a new connection, because a reused one was closed. Omitted: none. */
  readonly again?: number
}

/** The call failed before a complete reply was received. */
export class HttpFailure extends Error {
  readonly timedOut: boolean

  constructor(message: string, timedOut: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'HttpFailure'
    this.timedOut = timedOut
  }
}

/** The reply is larger than allowed; what was read of it is dropped. Another attempt would not help. */
export class ReplyTooLarge extends HttpFailure {
  constructor(maxBytes: number) {
    super(`the reply is larger than ${maxBytes / 2 ** 20} MB, the most that is read`, false)
  }
}

/**
 * A reply is parsed, sent to its worker and stored, so it takes many times its size. The longest answers, of 128,000 tokens
 * with log-probabilities, have about 13 MB.
 */
export const MAX_REPLY_BYTES = 16 * 2 ** 20
const AGENT = { keepAlive: true, maxSockets: 1024, scheduling: 'lifo' } as const

/** Loaded at the first call: every worker imports this module, few make calls, and TLS alone takes 8 MB of each. */
const PROTOCOLS = {
  http: () => process.getBuiltinModule('node:http'),
  https: () => process.getBuiltinModule('node:https'),
}
const agents: { [Name in keyof typeof PROTOCOLS]?: Agent } = {}

/** How often a call is repeated immediately. After that, it fails and waits like other failures. */
const MAX_STALE = 1

/**
 * Posts a body and reads the whole reply. `node:http` takes half the time of `fetch`, and has clearer errors. Rejects with `HttpFailure`, or with the
 * signal's reason.
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
      // The server most likely closed an idle connection at the moment it was reused.
      if (!(error instanceof StaleConnection)) throw error
      if (stale >= MAX_STALE) throw new HttpFailure(error.message, false, error.cause)
    }
  }
}

class StaleConnection extends Error {}

function postOnce({
  url,
  headers,
  body,
  timeoutMs,
  signal,
  maxBytes = MAX_REPLY_BYTES,
}: HttpCall): Promise<BytesReply> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const { protocol } = new URL(url)
    const name = protocol === 'https:' ? 'https' : 'http'
    const lib = PROTOCOLS[name]()
    const agent = (agents[name] ??= new lib.Agent(AGENT))
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
      fail(new HttpFailure(`no complete reply within ${timeoutMs} ms`, true))
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
      let parts: Buffer[] = []
      let size = 0
      const tooLarge = () => {
        parts = []
        fail(new ReplyTooLarge(maxBytes))
        request.destroy()
      }
      if (Number(response.headers['content-length']) > maxBytes) return tooLarge()
      response.on('data', (part: Buffer) => {
        size += part.length
        if (size > maxBytes) return tooLarge()
        parts.push(part)
      })
      response.once('error', (error) =>
        fail(new HttpFailure(`the connection closed before the reply was complete: ${error.message}`, false, error)),
      )
      response.once('close', () => {
        if (!response.complete) fail(new HttpFailure('the connection closed before the reply was complete', false))
      })
      response.once('end', () => {
        if (!response.complete) return
        const { statusCode, headers } = response
        try {
          const body = unpacked(parts, headers['content-encoding'], maxBytes)
          end(() => resolve({ status: statusCode!, headers: wanted(headers), body }))
        } catch (error) {
          const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
          const why = `the reply cannot be decompressed: ${(error as Error).message}`
          fail(isTooLarge ? new ReplyTooLarge(maxBytes) : new HttpFailure(why, false, error))
        }
      })
    })
    request.end(bytes)
  })
}

/** We request no compression, but some proxies compress anyway, and a model's `headers` may request it. */
const UNPACKERS: Readonly<Record<string, 'gunzipSync' | 'inflateSync' | 'brotliDecompressSync'>> = {
  ...{ gzip: 'gunzipSync', 'x-gzip': 'gunzipSync', deflate: 'inflateSync', br: 'brotliDecompressSync' },
}

function unpacked(parts: readonly Buffer[], encoding = 'identity', maxOutputLength: number): Buffer {
  const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
  const unpack = UNPACKERS[encoding.toLowerCase()]
  if (unpack === undefined) return bytes
  return process.getBuiltinModule('node:zlib')[unpack](bytes, { maxOutputLength })
}

const WANTED = ['content-type', 'location', 'retry-after', 'retry-after-ms', 'x-request-id'] as const

function wanted(headers: IncomingHttpHeaders): HttpReply['headers'] {
  const found: Record<string, string> = {}
  for (const name of WANTED) {
    const value = headers[name]
    if (typeof value === 'string') found[name] = value
  }
  return found
}
