import type { IncomingMessage } from 'node:http'
import { hostname, networkInterfaces } from 'node:os'
import { isLoopback } from '../../network/address.ts'
import { bearerToken, TokenCheck } from '../../network/bearer.ts'
import { Problem } from '../../network/http-problem.ts'

export interface AccessOptions {
  /** The host that the server listens on. */
  readonly host: string
  readonly port: number
  readonly secure: boolean
  readonly token: string
}

const DEFAULT_PORTS = { http: 80, https: 443 } as const
const MONTH_SECONDS = 30 * 24 * 3600

/** Decides which requests are answered. */
export class Access {
  readonly #options: AccessOptions
  readonly #token: TokenCheck
  readonly #cookie: string

  constructor(options: AccessOptions) {
    this.#options = options
    this.#token = new TokenCheck(options.token)
    // Cookies are shared by all ports of a host.
    this.#cookie = `manyworlds-view-${options.port}`
  }

  /**
   * Any web page may send requests to this machine, even through its own host name that resolves to 127.0.0.1 (DNS
   * rebinding). The headers Host and Origin, which browsers send, reveal that.
   */
  checkHeaders({ headers, method }: IncomingMessage): void {
    if (method !== 'GET' && method !== 'HEAD')
      throw new Problem(405, 'METHOD_NOT_ALLOWED', `${method} is not supported; use GET`)
    const { host, origin } = headers
    if (host === undefined || !this.#isOwnHost(host))
      throw new Problem(
        403,
        'FORBIDDEN',
        `the Host header '${shown(host)}' is not an address of this server; use the URL that \`manyworlds view\` printed`,
      )
    if (origin !== undefined && origin.toLowerCase() !== `${this.#scheme}://${host.toLowerCase()}`)
      throw new Problem(403, 'FORBIDDEN', `requests from the origin '${shown(origin)}' are not allowed`)
    if (headers['sec-fetch-site'] === 'cross-site' && headers['sec-fetch-mode'] !== 'navigate')
      throw new Problem(403, 'FORBIDDEN', 'requests from other sites are not allowed')
  }

  /** Throws if the request has no valid token. */
  checkToken({ headers }: IncomingMessage): void {
    const token = bearerToken(headers.authorization) ?? cookieIn(headers.cookie, this.#cookie)
    if (token === undefined) throw new Problem(401, 'UNAUTHORIZED', `there is no token. ${USE_URL}`)
    if (!this.#token.accepts(token)) throw new Problem(401, 'UNAUTHORIZED', `the token is wrong. ${USE_URL}`)
  }

  /** Checks the token of a URL, and returns the cookie that replaces it in later requests. */
  cookieFor(token: string): string {
    if (!this.#token.accepts(token)) throw new Problem(401, 'UNAUTHORIZED', `the token is wrong. ${USE_URL}`)
    const flags = `Path=/; Max-Age=${MONTH_SECONDS}; HttpOnly; SameSite=Strict${this.#options.secure ? '; Secure' : ''}`
    return `${this.#cookie}=${encodeURIComponent(token)}; ${flags}`
  }

  get #scheme(): 'http' | 'https' {
    return this.#options.secure ? 'https' : 'http'
  }

  #isOwnHost(header: string): boolean {
    const [, v6, name = v6, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/[\]@]+))(?::(\d{1,5}))?$/.exec(header) ?? []
    if (name === undefined) return false
    if ((port === undefined ? DEFAULT_PORTS[this.#scheme] : Number(port)) !== this.#options.port) return false
    const host = name.toLowerCase()
    return isLoopback(host) || (!isLoopback(this.#options.host) && this.#names().includes(host))
  }

  /** Beyond loopback: the given host, the name of this machine, and its addresses. */
  #names(): string[] {
    const addresses = Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? [])
    return [this.#options.host, hostname(), ...addresses].map((name) => name.toLowerCase())
  }
}

const USE_URL = 'Open the URL that `manyworlds view` printed: it has the token'

const shown = (header: string | undefined) => (header ?? '').slice(0, 100)

function cookieIn(header: string | undefined, name: string): string | undefined {
  for (const part of (header ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at < 0 || part.slice(0, at).trim() !== name) continue
    try {
      return decodeURIComponent(part.slice(at + 1).trim())
    } catch {
      return undefined
    }
  }
  return undefined
}
