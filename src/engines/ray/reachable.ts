import { connect } from 'node:http2'
import { ManyworldsError } from '../../errors.ts'
import { showAddress } from '../../network/address.ts'
import { connectWords } from '../../network/error-words.ts'
import { probeTcp } from '../../network/tcp-probe.ts'

const CONNECT_MS = 10_000
const ANSWER_MS = 3000
/** A web server answers sooner than this; for slower answers Ray itself is asked. */
const GLANCE_MS = 1000
/** The first bytes of every gRPC client: the preface of HTTP/2, and settings. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1')
const SETTINGS = 4
const TLS_ALERT = 0x15

/** Checked before Ray is asked: if nothing listens, Ray itself retries for minutes. */
export async function refuseUnreachable(address: string): Promise<void> {
  const place = placeOf(address)
  if (place === undefined) return
  const problem = await whyNot(place)
  const refused = `cannot use the Ray cluster at ${address}`
  if (problem === undefined) {
    const mistaken = await whichPort(address, place)
    if (mistaken !== undefined) throw new ManyworldsError('RAY_FAILED', `${refused}: ${mistaken}`)
    return
  }
  throw new ManyworldsError(
    'RAY_FAILED',
    `${refused}: ${problem}. Is the address right, and is it reachable from here? Start one with \`ray start --head\`, or use inLocal: true`,
  )
}

/** A method that only the head has, and one that only a Ray Client server has. */
const METHODS = { head: '/ray.rpc.NodeInfoGcsService/CheckAlive', client: '/ray.rpc.RayletDriver/ClusterInfo' } as const
/** The gRPC status UNIMPLEMENTED. */
const UNIMPLEMENTED = '12'

/** Says which of Ray's two ports this is, if it is the wrong one for the address. Ray itself says nothing, or retries for long. */
async function whichPort(address: string, place: Place): Promise<string | undefined> {
  const wanted = address.startsWith('ray://') ? 'client' : 'head'
  const other = wanted === 'head' ? 'client' : 'head'
  const [here, there] = await Promise.all([hasMethod(place, METHODS[wanted]), hasMethod(place, METHODS[other])])
  if (here !== false || there !== true) return undefined
  const { host } = place
  return wanted === 'head'
    ? `a Ray Client server answers there: give ray://${showAddress(place)}, or the port of \`ray start --head\` (6379 by default)`
    : `the head of the cluster answers there, and ray:// needs the port of its Ray Client server (10001 by default): give ray://${showAddress({ host, port: 10_001 })}, or, on a machine of the cluster, ${showAddress(place)}`
}

/** Whether a gRPC server has this method. Undefined: it did not say. */
function hasMethod({ host, port }: Place, path: string): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    const session = connect(`http://${showAddress({ host, port })}`)
    const end = (has?: boolean) => {
      clearTimeout(timer)
      session.destroy()
      resolve(has)
    }
    const timer = setTimeout(end, ANSWER_MS)
    session.on('error', () => end())
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    const judge = (headers: Readonly<Record<string, unknown>>) => {
      const status = headers['grpc-status']
      if (status !== undefined) end(String(status) !== UNIMPLEMENTED)
    }
    stream.on('response', judge)
    stream.on('trailers', judge)
    stream.on('error', () => end())
    stream.resume()
    // An empty message.
    stream.end(Buffer.alloc(5))
  })
}

/** Finds out what listens at an address that did not answer Ray. */
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
    return 'a gRPC server answers there, but not as the head of a Ray cluster does: give the port of `ray start` (6379 by default)'
  return 'something listens there that is not Ray: give the port of `ray start` (6379 by default)'
}

/** The first bytes of the answer to a gRPC client. Undefined: no answer. Empty: the connection was closed. */
async function firstBytes(place: Place): Promise<Buffer | undefined> {
  const probe = await probeTcp(place, { connectMs: ANSWER_MS, say: PREFACE, answerMs: ANSWER_MS })
  if (probe.outcome === 'open') return probe.answer
  return probe.outcome === 'silent' ? undefined : Buffer.alloc(0)
}

interface Place {
  readonly host: string
  readonly port: number
}

/** The host and port; undefined if only Ray knows them (`auto`, other schemes). */
function placeOf(address: string): Place | undefined {
  const [, scheme, rest = ''] = /^(?:(\w+):\/\/)?(.*)$/.exec(address) ?? []
  if (scheme === undefined ? rest === 'auto' || rest === 'local' : !/^(ray|https?)$/.test(scheme)) return undefined
  const [, v6, name, port] = /^(?:\[([^\]]+)\]|([^\s:/[\]@]+)):(\d{1,5})$/.exec(rest) ?? []
  const host = v6 ?? name
  if (host === undefined || (scheme !== undefined && scheme !== 'ray'))
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `ray.address: '${address}' is not the address of a Ray cluster; give host:port (6379 by default), ray://host:port (10001), or 'auto'`,
    )
  return { host, port: Number(port) }
}

/** Why this cannot be Ray: nothing listens there, or a web server does. Undefined: it may be Ray. */
async function whyNot(place: Place): Promise<string | undefined> {
  const probe = await probeTcp(place, { connectMs: CONNECT_MS, say: PREFACE, answerMs: GLANCE_MS })
  switch (probe.outcome) {
    case 'open':
      return probe.answer && isHttp(probe.answer) ? WEB_SERVER : undefined
    case 'silent':
      return `nothing answers there within ${CONNECT_MS / 1000} s`
    case 'failed':
      return connectWords(probe.error.code) ?? probe.error.message
  }
}

const isHttp = (bytes: Buffer): boolean => bytes.toString('latin1', 0, 5) === 'HTTP/'

const WEB_SERVER =
  'a web server answers there, not Ray: give the port of `ray start` (6379 by default), not that of the dashboard (8265)'
