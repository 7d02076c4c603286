import { ManyworldsError } from '../../errors.ts'
import { type Address, isLoopback, parseAddress, showAddress } from '../../network/address.ts'
import type { ClientTls } from '../../network/dial.ts'
import type { ServerTls } from '../../network/gate.ts'
import { readPems } from '../../network/pem.ts'
import { readToken, whyTokenNeeded } from '../../network/token.ts'
import { wordList } from '../../text/word-list.ts'
import type { NodesOptions } from './options.ts'

/** The options of the nodes engine, read and checked. */
export interface Credentials {
  readonly addresses: readonly Address[]
  readonly listen: Address | undefined
  readonly token: string | undefined
  readonly clientTls: ClientTls | undefined
  readonly serverTls: ServerTls | undefined
  readonly waitMs: number
}

const WAIT_MS = 30_000

/** Checks the options before anything is tried. */
export function readOptions(options: NodesOptions): Credentials {
  const { listen, tls } = options
  const addresses = options.addresses ?? (listen === undefined ? addressesFromEnvironment() : [])
  if (addresses.length === 0 && listen === undefined)
    throw wrong(
      "the nodes engine needs to know its nodes: nodes: { addresses: ['worker1:5000'] }, nodes: { listen: '0.0.0.0:7000' } for nodes that join, or the variable MANYWORLDS_NODES",
    )
  const called = addresses.map((text) => addressOf(text, 'nodes.addresses'))
  const twice = called.map(showAddress).find((name, index, all) => all.indexOf(name) < index)
  if (twice !== undefined) throw wrong(`nodes.addresses has ${twice} twice`)
  const joined = listen === undefined ? undefined : addressOf(listen, 'nodes.listen')
  const token = tokenOf(options)
  if (token === undefined && joined && !isLoopback(joined.host))
    throw wrong(
      `nodes.listen is ${showAddress(joined)}, which others can reach, and there is no token; make one with \`manyworlds node token\`, and give it as nodes.token or nodes.tokenFile`,
    )
  const given = tls === true || (tls === undefined && joined?.secure) ? {} : tls
  const clientTls = given && readPems(given, 'nodes.tls')
  for (const address of called) {
    const needed = whyTokenNeeded(address, token)
    if (needed !== undefined) throw wrong(`nodes.addresses: ${needed}`)
  }
  return {
    ...{ addresses: called, listen: joined, token, clientTls },
    serverTls: joined && given ? serverTlsOf(clientTls!) : undefined,
    waitMs: options.waitMs ?? WAIT_MS,
  }
}

/** From environment variables, so that a script can move to other machines unchanged. */
const addressesFromEnvironment = () => wordList(process.env.MANYWORLDS_NODES ?? '')

function addressOf(text: string, where: string): Address {
  const address = parseAddress(text)
  if (typeof address === 'string') throw wrong(`${where}: ${address}`)
  return address
}

function tokenOf({ token, tokenFile }: NodesOptions): string | undefined {
  if (token !== undefined) return token
  if (tokenFile !== undefined) return readToken(tokenFile, 'nodes.tokenFile')
  const fromEnvironment = process.env.MANYWORLDS_TOKEN_FILE
  return fromEnvironment ? readToken(fromEnvironment, 'MANYWORLDS_TOKEN_FILE') : undefined
}

function serverTlsOf({ cert, key, ca }: ClientTls): ServerTls {
  if (cert === undefined || key === undefined)
    throw wrong('nodes.listen with nodes.tls needs a certificate of its own: nodes.tls.cert and nodes.tls.key')
  return { cert, key, clientCa: ca }
}

const wrong = (message: string, cause?: unknown) => new ManyworldsError('CONFIG_INVALID', message, { cause })
