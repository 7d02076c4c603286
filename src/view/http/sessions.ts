import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

const SESSION_SECONDS = 30 * 24 * 3600
/** How long a browser may take to start. */
const CODE_MS = 2 * 60_000
const MAX_CODES = 100

/**
 * The sessions of browsers, and the codes that open one. A session's value is signed with the token and the port, so that it
 * outlives a restart with the same token, opens nothing else, and does not tell the token to other servers of this host, to
 * which browsers send it as well: cookies are shared by all ports.
 */
export class Sessions {
  static readonly seconds = SESSION_SECONDS
  readonly #key: string
  readonly #port: number
  readonly #now: () => number
  /** Codes that were made, each with its end and the session that it was exchanged for. */
  readonly #codes = new Map<string, { readonly until: number; session?: string }>()
  readonly #revoked = new Set<string>()

  constructor(token: string, port: number, now: () => number = Date.now) {
    this.#key = token
    this.#port = port
    this.#now = now
  }

  begin(): string {
    const signed = `${Math.floor(this.#now() / 1000) + SESSION_SECONDS}.${randomBytes(18).toString('base64url')}`
    return `${signed}.${this.#sign(signed)}`
  }

  accepts(session: string): boolean {
    const at = session.lastIndexOf('.')
    const signed = session.slice(0, Math.max(0, at))
    const ours = Buffer.from(this.#sign(signed))
    const theirs = Buffer.from(session.slice(at + 1))
    if (ours.length !== theirs.length || !timingSafeEqual(ours, theirs)) return false
    return Number.parseInt(signed, 10) * 1000 > this.#now() && !this.#revoked.has(session)
  }

  /** A code for one use, soon: the arguments of the program that opens a browser can be read by every user of the machine. */
  newCode(): string {
    const code = randomBytes(18).toString('base64url')
    this.#codes.set(code, { until: this.#now() + CODE_MS })
    if (this.#codes.size > MAX_CODES) this.#codes.delete(this.#codes.keys().next().value!)
    return code
  }

  /**
   * Exchanges a code for a session. Undefined: it is unknown, too old, or used. A code that comes twice was read by somebody
   * else, who may have been first: its session ends.
   */
  exchange(code: string): string | undefined {
    const known = this.#codes.get(code)
    if (known === undefined) return undefined
    if (known.session !== undefined) this.#revoked.add(known.session)
    if (known.session !== undefined || this.#now() > known.until) return undefined
    known.session = this.begin()
    return known.session
  }

  #sign(signed: string): string {
    return createHmac('sha256', this.#key).update(`manyworlds view ${this.#port} ${signed}`).digest('base64url')
  }
}
