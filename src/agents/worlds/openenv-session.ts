import { setTimeout as sleep } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import type { TaskError } from '../../errors.ts'
import { outsideTasks } from './outside-tasks.ts'
import { worldError } from './world-errors.ts'

/** How to reach a server, and for how long to wait. */
export interface OpenEnvServer {
  readonly url: string
  /** The same for messages, without what may be secret. */
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
  readonly callTimeoutMs: number
  readonly capacityWaitMs: number
}

export interface OpenEnvAnswer {
  readonly observation: unknown
  readonly reward: number
  readonly done: boolean
}

/** More than this is no observation. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** A server that does not close the connection when it is asked to. */
const CLOSE_MS = 1000
const FIRST_WAIT_MS = 100
const LONGEST_WAIT_MS = 2000

/** The server has no room: it says so, and closes the connection. */
class Full extends Error {}

/** One connection, one session, one environment of an OpenEnv server. Requests have no numbers: there is one at a time. */
export class OpenEnvSession {
  readonly #server: OpenEnvServer
  readonly #socket: WebSocket
  #waiting: { resolve(text: string): void; reject(error: Error): void } | undefined
  /** Why the connection is no more. */
  #closed: string | undefined
  /** What came while nobody had asked: the reason for which the server then closes the connection. */
  #unasked: string | undefined

  private constructor(server: OpenEnvServer, socket: WebSocket) {
    this.#server = server
    this.#socket = socket
    socket.on('message', (data) => this.#said(String(data)))
    // Followed by `close`.
    socket.on('error', (error) => {
      this.#closed ??= error.message
    })
    socket.on('close', (code, reason) => {
      this.#closed ??= `it was closed with code ${code}${reason.length > 0 ? ` (${reason})` : ''}`
      this.#waiting?.reject(this.#lost())
    })
  }

  /** Begins an episode, once the server has room for it. `data` is what its environment's reset is given. */
  static async reset(
    server: OpenEnvServer,
    data: object,
    signal: AbortSignal,
  ): Promise<{ readonly session: OpenEnvSession; readonly first: OpenEnvAnswer }> {
    const began = performance.now()
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      const session = await OpenEnvSession.#open(server)
      try {
        return { session, first: await session.#call({ type: 'reset', data }, 'reset') }
      } catch (error) {
        session.close()
        if (!(error instanceof Full)) throw error
        const waitedMs = performance.now() - began
        if (waitedMs + waitMs > server.capacityWaitMs)
          throw worldError(
            'WORLD_UNAVAILABLE',
            `the OpenEnv server at ${server.address} had no room for another session within ${server.capacityWaitMs} ms: ${error.message}. Run fewer episodes at once (workers, concurrency), or let it serve more: max_concurrent_envs, and SUPPORTS_CONCURRENT_SESSIONS = True in its environment`,
          )
        // Not all at the same time: whoever waits was mostly sent away together with others.
        await sleep(waitMs * (0.5 + Math.random() / 2), undefined, { signal })
      }
    }
  }

  /** `step`: how many there were before. */
  async step(action: object, step: number): Promise<OpenEnvAnswer> {
    return this.#call({ type: 'step', data: action }, `step ${step}`)
  }

  close(): void {
    if (this.#socket.readyState === this.#socket.OPEN) {
      this.#socket.send('{"type":"close"}')
      this.#socket.close()
    }
    outsideTasks(() => setTimeout(() => this.#socket.terminate(), CLOSE_MS).unref())
  }

  static async #open(server: OpenEnvServer): Promise<OpenEnvSession> {
    const { WebSocket } = await import('ws')
    const { url, address, headers, callTimeoutMs } = server
    return outsideTasks(
      () =>
        new Promise((resolve, reject) => {
          const unreachable = (why: string, advice = 'start the server, or correct `url`') =>
            reject(worldError('WORLD_UNAVAILABLE', `no OpenEnv server can be reached at ${address}: ${why}; ${advice}`))
          const options = { headers, handshakeTimeout: callTimeoutMs, maxPayload: MAX_ANSWER_BYTES }
          const socket = new WebSocket(url, { ...options, perMessageDeflate: false })
          const session = new OpenEnvSession(server, socket)
          socket.once('open', () => resolve(session))
          socket.once('error', (error) => unreachable(error.message))
          socket.once('unexpected-response', (request, response) => {
            const how = `it answered with HTTP ${response.statusCode}`
            const refused = response.statusCode === 401 || response.statusCode === 403
            unreachable(
              how,
              refused ? 'give what it asks for in `headers`' : 'is that the address of an OpenEnv server?',
            )
            request.destroy()
          })
        }),
    )
  }

  async #call(message: object, what: string): Promise<OpenEnvAnswer> {
    const { callTimeoutMs, address } = this.#server
    let timer: NodeJS.Timeout | undefined
    try {
      const text = await new Promise<string>((resolve, reject) => {
        if (this.#unasked !== undefined) return resolve(this.#unasked)
        if (this.#closed !== undefined) return reject(this.#lost())
        this.#waiting = { resolve, reject }
        this.#socket.send(JSON.stringify(message))
        timer = setTimeout(() => {
          this.#socket.terminate()
          const late = `${what} in the OpenEnv environment at ${address} took longer than callTimeoutMs, ${callTimeoutMs} ms`
          reject(worldError('WORLD_TIMEOUT', late))
        }, callTimeoutMs)
      })
      return this.#read(text, what)
    } catch (error) {
      if (error instanceof Lost) throw this.#cut(what, error)
      throw error
    } finally {
      clearTimeout(timer)
      this.#waiting = undefined
    }
  }

  #said(text: string): void {
    if (this.#waiting === undefined) this.#unasked ??= text
    else this.#waiting.resolve(text)
  }

  #lost(): Lost {
    return new Lost(this.#closed)
  }

  #cut(what: string, { message }: Lost): TaskError {
    return worldError(
      'WORLD_DISCONNECTED',
      `the connection to the OpenEnv server at ${this.#server.address} was lost during ${what}: ${message}. With it, its environment is gone; the task can be tried again (maxAttempts)`,
    )
  }

  #read(text: string, what: string): OpenEnvAnswer {
    const where = `${what} in the OpenEnv environment at ${this.#server.address}`
    const { type, data } = parsed(text, where)
    if (type === 'error') throw failure(data, where)
    const { observation, reward, done } = data
    const isReward =
      reward === undefined || reward === null || typeof reward === 'number' || typeof reward === 'boolean'
    if (type !== 'observation' || observation === undefined || typeof done !== 'boolean' || !isReward)
      throw worldError('WORLD_FAILED', `${where} was answered with no observation: ${text.slice(0, 200)}`)
    // None: there is nothing to reward.
    return { observation, reward: Number(reward ?? 0), done }
  }
}

class Lost extends Error {}

interface Message {
  readonly type: unknown
  readonly data: Readonly<Record<string, unknown>>
}

function parsed(text: string, where: string): Message {
  try {
    const { type, data } = JSON.parse(text) as Message
    if (typeof data === 'object' && data !== null) return { type, data }
  } catch {
    // Said below.
  }
  throw worldError('WORLD_FAILED', `${where} was answered with no message of OpenEnv: ${text.slice(0, 200)}`)
}

/** What the server says is wrong, with what to do about it. */
function failure({ code, message, errors }: Readonly<Record<string, unknown>>, where: string): Error {
  const said = `${String(message).slice(0, 2000)} [${String(code).slice(0, 100)}]`
  switch (code) {
    case 'CAPACITY_REACHED':
      return new Full(String(message).slice(0, 2000))
    case 'VALIDATION_ERROR':
      return worldError(
        'ACTION_INVALID',
        `${where} was refused: ${said}: ${JSON.stringify(errors ?? null).slice(0, 1000)}; the server's /schema says which fields it takes`,
      )
    case 'EXECUTION_ERROR':
      return worldError('WORLD_FAILED', `${where} raised an error: ${said}`)
    case 'FACTORY_ERROR':
      return worldError(
        'WORLD_UNAVAILABLE',
        `the server cannot make an environment, for ${where}: ${said}; see its log`,
      )
    default:
      return worldError('WORLD_FAILED', `${where} failed: ${said}`)
  }
}
