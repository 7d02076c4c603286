import type { IncomingMessage } from 'node:http'
import { hostname, networkInterfaces } from 'node:os'
import { isLoopback } from '../../network/address.ts'
import { bearerToken, TokenCheck } from '../../network/bearer.ts'
import { Problem } from '../../network/http-problem.ts'
import { Sessions } from './sessions.ts'

export interface AccessOptions {
  /** The host that the server listens on. */
  readonly host: string
  readonly port: number
  readonly secure: boolean
  readonly token: string
}

const DEFAULT_PORTS = { http: 80, https: 443 } as const

/** Decides which requests are answered. */
export class Access {
  readonly #options: AccessOptions
  readonly #token: TokenCheck
  readonly #sessions: Sessions
  readonly #cookie: string

  constructor(options: AccessOptions) {
    this.#options = options
    this.#token = new TokenCheck(options.token)
    this.#sessions = new Sessions(options.token, options.port)
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

  /** Throws if the request has neither a session nor the token. */
  check({ headers }: IncomingMessage): void {
    const token = bearerToken(headers.authorization)
    if (token !== undefined && !this.#token.accepts(token)) throw refused('the token is wrong')
    if (token !== undefined || this.#hasSession(headers.cookie)) return
    throw refused('there is no token, or it is an old one')
  }

  /** A URL that opens a session once, within two minutes. */
  newCode(): string {
    return this.#sessions.newCode()
  }

  /** Checks who opens the page, by the token or the code of its URL, or by its session. Returns the cookie of a new session. */
  checkPage(request: IncomingMessage, query: URLSearchParams): string | undefined {
    const [token, code] = [query.get('token'), query.get('code')]
    if (token !== null) {
      if (!this.#token.accepts(token)) throw refused('the token is wrong')
      return this.#cookieOf(this.#sessions.begin())
    }
    if (code === null || this.#hasSession(request.headers.cookie)) {
      this.check(request)
      return undefined
    }
    const session = this.#sessions.exchange(code)
    if (session === undefined) throw refused('this address was used before, or is too old')
    return this.#cookieOf(session)
  }

  #hasSession(cookies: string | undefined): boolean {
    const session = cookieIn(cookies, this.#cookie)
    return session !== undefined && this.#sessions.accepts(session)
  }

  #cookieOf(session: string): string {
    const secure = this.#options.secure ? '; Secure' : ''
    return `${this.#cookie}=${session}; Path=/; Max-Age=${Sessions.seconds}; HttpOnly; SameSite=Strict${secure}`
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

const refused = (why: string) =>
  new Problem(401, 'UNAUTHORIZED', `${why}. Open the URL that \`manyworlds view\` printed: it has the token`)

const shown = (header: string | undefined) => (header ?? '').slice(0, 100)

function cookieIn(header: string | undefined, name: string): string | undefined {
  for (const part of (header ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at >= 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim()
  }
  return undefined
}
