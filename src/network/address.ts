import { isIP } from 'node:net'

export const DEFAULT_PORT = 5000

export interface Address {
  readonly host: string
  readonly port: number
  /** Undefined: the rest of the configuration decides. */
  readonly secure: boolean | undefined
}

/** Parses `worker1:5000`, `worker1`, `[::1]:5000`, `ws://…`, `wss://…`; returns what is wrong if it is invalid. */
export function parseAddress(text: string): Address | string {
  const [, scheme, rest = ''] = /^(?:(\w+):\/\/)?(.*)$/.exec(text.trim()) ?? []
  if (scheme !== undefined && scheme !== 'ws' && scheme !== 'wss')
    return `'${text}' begins with ${scheme}://; give host:port, ws://host:port or wss://host:port`
  if (/^\d+$/.test(rest)) return `'${text}' is only a port; give host:port, such as 127.0.0.1:${rest}`
  const [, v6, name, port] = /^(?:\[([^\]]+)\]|([^\s:/[\]@]+))(?::(\d{1,5}))?\/?$/.exec(rest) ?? []
  const host = v6 ?? name
  const isHost = v6 === undefined ? name !== undefined && URL.canParse(`ws://${name}`) : isIP(v6) === 6
  // URLs refuse a host such as 127.999.1.1, which ends in a number and is not an IP address.
  if (host === undefined || !isHost) return `'${text}' is not an address; give host:port, such as worker1.cluster:5000`
  if (port !== undefined && Number(port) > 65_535) return `'${text}': there is no port ${port}`
  return {
    host,
    port: port === undefined ? DEFAULT_PORT : Number(port),
    secure: scheme === undefined ? undefined : scheme === 'wss',
  }
}

export const showAddress = ({ host, port }: Pick<Address, 'host' | 'port'>): string =>
  `${isIP(host) === 6 ? `[${host}]` : host}:${port}`

/** Whether it is a loopback address. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
