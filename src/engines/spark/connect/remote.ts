import { ManyworldsError } from '../../../errors.ts'

/** A parsed connection string: where a Spark Connect server is, and how this client identifies itself. */
export interface Remote {
  readonly host: string
  readonly port: number
  /** The value of `use_ssl`. Undefined: see `isSecure`. */
  readonly useSsl?: boolean
  readonly token?: string
  readonly userId?: string
  readonly userAgent?: string
  readonly sessionId?: string
  /** All other parameters. They are sent as headers of every request. */
  readonly headers: Readonly<Record<string, string>>
}

const DEFAULT_PORT = 15002
const EXAMPLE = 'sc://host:15002/;token=...;use_ssl=true'
const MAX_USER_AGENT_CHARS = 2048
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i
const HEADER_NAME = /^[\w.-]+$/
const HEADER_VALUE = /^[\x20-\x7e]*$/
/** Ping settings of other clients. Ours are fixed, and these must not become headers. */
const NOT_OURS = /^grpc_keepalive_/

/**
 * Parses `sc://host:port/;key=value;...` as pyspark does: if it has no token, SPARK_CONNECT_AUTHENTICATE_TOKEN is used. Unlike
 * with pyspark, values may contain `=`, as tokens do.
 *
 * Errors name parameters but never show their values: one of them may be the token, or half of it.
 */
export function parseRemote(text: string, env: NodeJS.ProcessEnv = process.env): Remote {
  const [, authority, rest = ''] = /^sc:\/\/([^/]*)(?:\/(.*))?$/s.exec(text) ?? []
  if (authority === undefined) throw invalid('it does not begin with sc://')
  if (authority.includes(';')) throw invalid('there must be a / before the first ;')
  if (rest !== '' && !rest.startsWith(';')) throw invalid('after the / there can only be parameters, each after a ;')
  const { token = env.SPARK_CONNECT_AUTHENTICATE_TOKEN || undefined, ...others } = readParameters(rest)
  return { ...readAuthority(authority), ...others, ...(token === undefined ? {} : { token }) }
}

/** For messages: without secrets. */
export const showRemote = ({ host, port }: Pick<Remote, 'host' | 'port'>): string => `sc://${bracketed(host)}:${port}`

/**
 * Whether to use TLS. `use_ssl` decides; without it, a token is sent in the clear only to this machine. To send it in the clear to
 * another machine (through a tunnel, or a mesh that encrypts), set `use_ssl=false`.
 */
export function isSecure({ host, useSsl, token }: Remote, tls: object | undefined): boolean {
  if (useSsl === false && tls !== undefined)
    throw invalid('it has use_ssl=false, but TLS settings were given too; remove one of them')
  return useSsl ?? (tls !== undefined || (token !== undefined && !isLoopback(host)))
}

const isLoopback = (host: string): boolean => /^(localhost|127(\.\d{1,3}){3}|::1)$/i.test(host)

export const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

function readAuthority(authority: string): { host: string; port: number } {
  if (authority.includes('@')) throw invalid('it has a user or password before the host; use ;user_id= and ;token=')
  const [, v6, name, port] = /^(?:\[([\da-f:.]+)\]|([^:[\]\s?#]+))(?::(\d{1,5}))?$/i.exec(authority) ?? []
  const host = v6 ?? name
  if (/^(:\d*)?$/.test(authority)) throw invalid('it has no host')
  if (host === undefined)
    throw invalid('what comes after sc:// is not a host, or a host and a port (an IPv6 address goes into [])')
  const number = port === undefined ? DEFAULT_PORT : Number(port)
  if (number < 1 || number > 65535) throw invalid(`${number} is not a port`)
  return { host, port: number }
}

function readParameters(text: string): Omit<Remote, 'host' | 'port'> {
  const found: { -readonly [Key in keyof Remote]?: Remote[Key] } = {}
  const headers: Record<string, string> = {}
  for (const pair of text.split(';')) {
    if (pair === '') continue
    const at = pair.indexOf('=')
    if (at <= 0) throw invalid('each parameter must be key=value (write ; within a value as %3B)')
    const key = pair.slice(0, at)
    const value = decoded(key, pair.slice(at + 1))
    switch (key) {
      case 'use_ssl':
        if (!/^(true|false)$/i.test(value)) throw invalid('use_ssl must be true or false')
        found.useSsl = value.toLowerCase() === 'true'
        break
      case 'token':
        if (value === '') throw invalid('token is empty')
        found.token = value
        break
      case 'user_id':
        found.userId = value
        break
      case 'user_agent':
        if (encodeURIComponent(value).length > MAX_USER_AGENT_CHARS)
          throw invalid(`user_agent is longer than ${MAX_USER_AGENT_CHARS} characters`)
        found.userAgent = value
        break
      case 'session_id':
        if (!UUID.test(value)) throw invalid('session_id must be a UUID')
        found.sessionId = value
        break
      default:
        if (NOT_OURS.test(key)) break
        if (!HEADER_NAME.test(key)) throw invalid('the name of a parameter can only have letters, digits, - _ and .')
        headers[key.toLowerCase()] = value
    }
  }
  return { ...found, headers }
}

function decoded(key: string, value: string): string {
  let text: string
  try {
    text = decodeURIComponent(value)
  } catch {
    throw invalid(`the value of ${key} has a % that is not followed by two hex digits (write % as %25)`)
  }
  // All values become HTTP headers, except these two.
  if (key !== 'user_id' && key !== 'user_agent' && !HEADER_VALUE.test(text))
    throw invalid(`the value of ${key} has characters that a header cannot have`)
  return text
}

const invalid = (why: string): ManyworldsError =>
  new ManyworldsError(
    'CONFIG_INVALID',
    `this is not the address of a Spark Connect server: ${why}. An example: ${EXAMPLE}`,
  )
