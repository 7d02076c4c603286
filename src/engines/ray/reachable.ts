import { connect } from 'node:net'
import { ManyworldsError } from '../../errors.ts'

const CONNECT_MS = 10_000

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

function whyNot(place: Place): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(place)
    const end = (problem?: string) => {
      socket.destroy()
      resolve(problem)
    }
    socket.setTimeout(CONNECT_MS, () => end(`nothing answers there within ${CONNECT_MS / 1000} s`))
    socket.once('connect', () => end())
    socket.once('error', (error: NodeJS.ErrnoException) => end(WORDS[error.code ?? ''] ?? error.message))
  })
}

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there (connection refused)',
  ENOTFOUND: 'there is no machine of that name',
  EAI_AGAIN: 'there is no machine of that name',
}
