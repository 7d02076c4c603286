import { connect } from 'node:net'
import { ManyworldsError } from '../../errors.ts'

const CONNECT_MS = 10_000
const ANSWER_MS = 3000
/** Where it takes longer, Ray is asked anyway. */
const GLANCE_MS = 1000
/** The first bytes of every gRPC client: the preface of HTTP/2, and settings. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1')
const SETTINGS = 4
const TLS_ALERT = 0x15

/** Asked before Ray is: where nobody listens, Ray itself goes on trying for minutes. */
export async function refuseUnreachable(address: string): Promise<void> {
  const place = placeOf(address)
  if (place === undefined) return
  const problem = await whyNot(place)
  if (problem === undefined) return
  throw new ManyworldsError(
    'RAY_FAILED',
    `cannot use the Ray cluster at ${address}: ${problem}. Is the address right, and is it reachable from here? Start one with \`ray start --head\`, or use inLocal: true`,
  )
}

/** What is at an address where somebody listens, but Ray got no answer. */
export async function whoListens(address: string): Promise<string> {
  const place = placeOf(address)
  const problem = place && (await whyNot(place))
  if (problem !== undefined) return problem
  const first = place && (await firstBytes(place))
  if (first === undefined)
    return 'connections are accepted there, but nothing is answered: the head of the cluster is stopped, or overloaded. Look at its machine, or start it again'
  if (first.byteLength === 0 || first[0] === TLS_ALERT)
    return 'the connection is closed at once: the cluster uses TLS and needs ray.tls, or something else than Ray listens there'
  if (first[3] === SETTINGS)
    return 'a gRPC server answers there, but not as the head of a Ray cluster does: give the port of `ray start` (6379 where it was not told another)'
  return 'something listens there that is not Ray: give the port of `ray start` (6379 where it was not told another)'
}

/** What it answers to a gRPC client: undefined for nothing, empty if it closes the connection. */
function firstBytes(place: Place): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = connect(place)
    const timer = setTimeout(() => end(undefined), ANSWER_MS)
    const end = (bytes: Buffer | undefined) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(bytes)
    }
    socket.once('connect', () => socket.write(PREFACE))
    socket.once('data', (bytes: Buffer) => end(bytes))
    for (const event of ['error', 'end'] as const) socket.once(event, () => end(Buffer.alloc(0)))
  })
}

interface Place {
  readonly host: string
  readonly port: number
}

/** Where it listens; undefined where only Ray knows: `auto`, and the schemes of others. */
function placeOf(address: string): Place | undefined {
  const [, scheme, rest = ''] = /^(?:(\w+):\/\/)?(.*)$/.exec(address) ?? []
  if (scheme === undefined ? rest === 'auto' || rest === 'local' : !/^(ray|https?)$/.test(scheme)) return undefined
  const [, v6, name, port] = /^(?:\[([^\]]+)\]|([^\s:/[\]@]+)):(\d{1,5})$/.exec(rest) ?? []
  const host = v6 ?? name
  if (host === undefined || (scheme !== undefined && scheme !== 'ray'))
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `ray.address: '${address}' is not the address of a Ray cluster; give host:port (6379 where \`ray start\` was not told another), ray://host:port (10001), or 'auto'`,
    )
  return { host, port: Number(port) }
}

/** Why Ray need not be asked: nobody listens there, or a web server does. Undefined: it may be Ray. */
function whyNot(place: Place): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(place)
    const end = (problem?: string) => {
      socket.destroy()
      resolve(problem)
    }
    socket.setTimeout(CONNECT_MS, () => end(`nothing answers there within ${CONNECT_MS / 1000} s`))
    socket.once('connect', () => {
      socket.setTimeout(0)
      socket.write(PREFACE)
      setTimeout(end, GLANCE_MS).unref()
    })
    socket.once('data', (bytes: Buffer) => end(isHttp(bytes) ? WEB_SERVER : undefined))
    socket.once('close', () => end())
    socket.once('error', (error: NodeJS.ErrnoException) => end(socketProblem(error)))
  })
}

/** Somebody who closes the connection is there: with TLS, say. */
const socketProblem = ({ code = '', message }: NodeJS.ErrnoException): string | undefined =>
  code === 'ECONNRESET' || code === 'EPIPE' ? undefined : (WORDS[code] ?? message)

const isHttp = (bytes: Buffer): boolean => bytes.toString('latin1', 0, 5) === 'HTTP/'

const WEB_SERVER =
  'a web server answers there, not Ray: give the port of `ray start` (6379 where it was not told another), not that of the dashboard (8265)'

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there (connection refused)',
  ENOTFOUND: 'there is no machine of that name',
  EAI_AGAIN: 'there is no machine of that name',
}
