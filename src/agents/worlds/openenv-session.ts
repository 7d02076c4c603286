import { setTimeout as sleep } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import type { TaskError } from '../../errors.ts'
import { outsideTasks } from './outside-tasks.ts'
import { worldError } from './world-errors.ts'

/** How to reach a server, and how long to wait. */
export interface OpenEnvServer {
  readonly url: string
  /** The address for messages, without credentials. */
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

/** Larger observations are an error. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** How long the server may take to close the connection. */
const CLOSE_MS = 1000
const FIRST_WAIT_MS = 100
const LONGEST_WAIT_MS = 2000

/** The server has no capacity: it reports that and closes the connection. */
class Full extends Error {}

/** One connection to an OpenEnv server, with one session and one environment. Requests have no numbers, so one is made at a time. */
export class OpenEnvSession {
  readonly #server: OpenEnvServer
  readonly #socket: WebSocket
  #waiting: { resolve(text: string): void; reject(error: Error): void } | undefined
  /** Why the connection is closed. */
  #closed: string | undefined
  /** A message that came without a request: the reason why the server is about to close the connection. */
  #unasked: string | undefined

  private constructor(server: OpenEnvServer, socket: WebSocket) {
    this.#server = server
    this.#socket = socket
    socket.on('message', (data) => this.#said(String(data)))
    // `close` follows.
    socket.on('error', (error) => {
      this.#closed ??= error.message
    })
    socket.on('close', (code, reason) => {
      this.#closed ??= `the server closed it with code ${code}${reason.length > 0 ? ` (${reason})` : ''}`
      this.#waiting?.reject(this.#lost())
    })
  }

  /** Starts an episode when the server has capacity for it. `data`: the arguments of the environment's reset. */
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
            `the OpenEnv server at ${server.address} had no capacity for another session within ${server.capacityWaitMs} ms: ${error.message}. Run fewer episodes at once (workerNum, concurrency), or raise the limit of the server: max_concurrent_envs, and SUPPORTS_CONCURRENT_SESSIONS = True in its environment`,
          )
        // Add jitter: episodes that wait were usually rejected at the same time.
        await sleep(waitMs * (0.5 + Math.random() / 2), undefined, { signal })
      }
    }
  }

  /** `step`: the number of steps before this one. */
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
            reject(
              worldError('WORLD_UNAVAILABLE', `cannot connect to the OpenEnv server at ${address}: ${why}; ${advice}`),
            )
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
              refused ? 'give its credentials in `headers`' : 'check that this is the address of an OpenEnv server',
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
          const late = `${what} in the OpenEnv environment at ${address} took longer than callTimeoutMs (${callTimeoutMs} ms)`
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
      `the connection to the OpenEnv server at ${this.#server.address} was lost during ${what}: ${message}. The environment of the episode is lost with it; set maxAttempts to retry such tasks`,
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
      throw worldError('WORLD_FAILED', `${where} returned no observation: ${text.slice(0, 200)}`)
    // A missing reward means 0.
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
    // Reported below.
  }
  throw worldError('WORLD_FAILED', `${where} returned something other than an OpenEnv message: ${text.slice(0, 200)}`)
}

/** Turns an error of the server into ours, with advice. */
function failure({ code, message, errors }: Readonly<Record<string, unknown>>, where: string): Error {
  const said = `${String(message).slice(0, 2000)} [${String(code).slice(0, 100)}]`
  switch (code) {
    case 'CAPACITY_REACHED':
      return new Full(String(message).slice(0, 2000))
    case 'VALIDATION_ERROR':
      return worldError(
        'ACTION_INVALID',
        `${where} was refused: ${said}: ${JSON.stringify(errors ?? null).slice(0, 1000)}; see the server's /schema for its fields`,
      )
    case 'EXECUTION_ERROR':
      return worldError('WORLD_FAILED', `${where} raised an error: ${said}`)
    case 'FACTORY_ERROR':
      return worldError(
        'WORLD_UNAVAILABLE',
        `the server cannot create an environment for ${where}: ${said}; see its log`,
      )
    default:
      return worldError('WORLD_FAILED', `${where} failed: ${said}`)
  }
}
