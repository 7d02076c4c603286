import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { type Body, Refused, type ServiceOptions, TinkerService } from './tinker-service.ts'
import { readRequest } from './tinker-wire.ts'

/**
 * A server that answers as Tinker does, by the calls of its Python SDK 0.36.0, with the real mathematics of a tiny model.
 * test/heavy/tinker-sdk.test.ts holds it to that SDK.
 */

export const KEY = 'tml-scripted-0123456789'

/** What happens to the next call of a path. `lost`: it is done, and the answer never arrives. `cut`: it is not done. */
export type Fault =
  | 'none'
  | 'lost'
  | 'cut'
  | 'hang'
  | { readonly status: number; readonly body?: object; readonly headers?: Readonly<Record<string, string>> }

export interface TinkerServerOptions extends ServiceOptions {
  /** For what `client/config` says. */
  readonly flags?: Readonly<Record<string, unknown>>
  /** Tokens instead of the key, each for so many seconds. */
  readonly tokenSeconds?: number
}

export interface Call {
  readonly path: string
  readonly body: Body
  readonly headers: IncomingMessage['headers']
}

export class TinkerServer {
  readonly calls: Call[] = []
  readonly service: TinkerService
  readonly #options: TinkerServerOptions
  readonly #faults = new Map<string, Fault[]>()
  readonly #tokens = new Map<string, number>()
  readonly #server = createServer((request, response) => void this.#serve(request, response))

  private constructor(options: TinkerServerOptions) {
    this.#options = options
    this.service = new TinkerService(options)
  }

  static async start(options: TinkerServerOptions = {}): Promise<TinkerServer> {
    const server = new TinkerServer(options)
    await once(server.#server.listen(0, '127.0.0.1'), 'listening')
    return server
  }

  get baseURL(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The model that was made last. */
  get last() {
    return [...this.service.models.values()].at(-1)!
  }

  /** How often a path was called. */
  count(path: string): number {
    return this.calls.filter((call) => call.path === path).length
  }

  /** What the next calls of a path meet with. */
  fail(path: string, ...faults: readonly Fault[]): void {
    this.#faults.set(path, [...(this.#faults.get(path) ?? []), ...faults])
  }

  /** What `fail` has said of a path, and did not happen yet, will not. */
  heal(path: string): void {
    this.#faults.delete(path)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await buffer(request)
    const path = request.url!.replace(/^\/api\/v1\//, '')
    const fault = this.#faults.get(path)?.shift()
    if (fault === 'hang') return
    if (fault === 'cut') return void request.socket.destroy()
    if (typeof fault === 'object') return answer(response, fault.body ?? null, fault.status, fault.headers)
    try {
      this.#checkKey(path, request.headers['x-api-key'])
      const isBytes = request.headers['content-type'] === 'application/x-protobuf'
      const body = isBytes ? { ...readRequest(bytes) } : (JSON.parse(bytes.toString() || '{}') as Body)
      this.calls.push({ path, body, headers: request.headers })
      const result = this.#do(path, body)
      if (fault === 'lost') request.socket.destroy()
      else answer(response, result)
    } catch (error) {
      const status = error instanceof Refused ? error.status : 500
      answer(response, { detail: (error as Error).message }, status)
    }
  }

  #do(path: string, body: Body): object | Uint8Array {
    switch (path) {
      case 'client/config':
        return { pjwt_auth_enabled: this.#options.tokenSeconds !== undefined, ...this.#options.flags }
      case 'client/dynamic_config':
        return {}
      case 'auth/token':
        return { jwt: this.#token() }
      default:
        return this.service.do(path, body)
    }
  }

  #checkKey(path: string, given: unknown): void {
    const wantsToken = this.#options.tokenSeconds !== undefined && path !== 'client/config' && path !== 'auth/token'
    const until = this.#tokens.get(String(given)) ?? 0
    if (wantsToken ? until > Date.now() : given === KEY) return
    throw new Refused(401, `Invalid API key: ${String(given)}`)
  }

  #token(): string {
    const until = Date.now() + 1000 * this.#options.tokenSeconds!
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const token = `${part({ alg: 'none' })}.${part({ exp: until / 1000, id: this.#tokens.size })}.scripted-signature`
    this.#tokens.set(token, until)
    return token
  }
}

function answer(
  response: ServerResponse,
  result: object | Uint8Array | null,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): void {
  const type = result instanceof Uint8Array ? 'application/x-protobuf' : 'application/json'
  const body = result === null ? '' : result instanceof Uint8Array ? result : JSON.stringify(result)
  response.writeHead(status, { 'content-type': type, ...headers }).end(body)
}
