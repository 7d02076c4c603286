import { readFileSync, writeFileSync } from 'node:fs'
import { ManyworldsError } from '../errors.ts'
import { joinDriver } from '../host/join.ts'
import { listenForDrivers } from '../host/listen.ts'
import { NodeHost } from '../host/node-host.ts'
import { type Address, isLoopback, parseAddress, showAddress } from '../network/address.ts'
import { LEASE_MS } from '../network/limits.ts'
import { isReadableByOthers, newToken, readToken } from '../network/token.ts'
import { ownPackage } from '../own-package.ts'
import { counted } from '../text/quantities.ts'
import type { NodeArgs } from './specs/node.ts'
import { UsageError } from './usage-error.ts'

const log = (line: string) => void process.stderr.write(`manyworlds node: ${line}\n`)

/** Runs workers on this machine for drivers elsewhere, until it is stopped. */
export async function run(args: NodeArgs): Promise<number> {
  if (args.action === 'token') return printToken(args.out)
  if (args.out !== undefined) throw new UsageError('--out is only of use with "manyworlds node token"')
  if (args.lease > LEASE_MS)
    throw new UsageError(`--lease can be at most ${LEASE_MS / 1000}s: drivers start tasks elsewhere soon after that`)
  const way = args.listen ?? args.connect
  if (way === undefined)
    throw new UsageError('say how drivers are found: --listen 127.0.0.1:5000, or --connect wss://driver:7000')
  const address = parseAddress(way)
  if (typeof address === 'string') throw new UsageError(address)

  const host = new NodeHost({
    ...{
      log,
      workers: args.workers,
      workerMemoryMb: args.workerMemory,
      maxDrivers: args.maxDrivers,
      leaseMs: args.lease,
    },
    ...{ labels: list(args.labels), passEnv: list(args.passEnv), cacheFolder: args.cacheDir },
  })
  const token = args.tokenFile === undefined ? undefined : tokenFrom(args.tokenFile)
  const stopping = new AbortController()
  const stopped = onSignal(host, args.grace, stopping)
  await host.prepare()
  const work =
    args.listen === undefined
      ? join(host, args, address, token, stopping.signal)
      : listen(host, args, address, token, stopped)
  try {
    await Promise.race([work, stopped])
    if (stopping.signal.aborted) await stopped
    else await host.close('the node has nothing more to do')
  } catch (error) {
    await host.close((error as Error).message)
    throw error
  }
  return 0
}

async function listen(
  host: NodeHost,
  args: NodeArgs,
  address: Address,
  token: string | undefined,
  stopped: Promise<void>,
): Promise<void> {
  const { tlsCert, tlsKey, clientCa, maxConnections } = args
  const tls =
    tlsCert === undefined
      ? undefined
      : { cert: read(tlsCert), key: read(tlsKey!), clientCa: clientCa === undefined ? undefined : read(clientCa) }
  const gate = await listenForDrivers(host, { address, token, tls, maxConnections, log })
  const { workers, labels } = host.info
  const where = `${tls ? 'wss' : 'ws'}://${showAddress({ host: address.host, port: gate.port })}`
  log(
    `${ownPackage.version} listens on ${where}, ${counted(workers, 'worker')}${labels.length > 0 ? `, labels ${labels.join(', ')}` : ''}`,
  )
  if (!tls && !isLoopback(address.host))
    log(
      'the connection is not encrypted: who can read the network can read tasks and code; use --tls-cert and --tls-key',
    )
  await stopped.finally(() => gate.close())
}

async function join(
  host: NodeHost,
  args: NodeArgs,
  address: Address,
  token: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { giveUp: giveUpMs, stay, tlsCa, tlsCert, tlsKey } = args
  const cert = tlsCert === undefined ? {} : { cert: read(tlsCert), key: read(tlsKey!) }
  const tls =
    tlsCa === undefined && tlsCert === undefined
      ? undefined
      : { ...cert, ...(tlsCa === undefined ? {} : { ca: read(tlsCa) }) }
  log(`${ownPackage.version} joins the driver at ${showAddress(address)}, ${counted(host.info.workers, 'worker')}`)
  await joinDriver(host, { address, token, tls, giveUpMs, stay, signal, log })
  if (!signal.aborted) log('the driver is done')
}

/** Resolves when it was asked to stop, and has. */
function onSignal(host: NodeHost, graceMs: number, stopping: AbortController): Promise<void> {
  return new Promise((resolve) => {
    const stop = (signal: string) => {
      if (stopping.signal.aborted) {
        log('stopped at once')
        void host.close('the node was stopped').then(() => process.exit(0))
        return
      }
      log(`${signal}: takes nothing more; running tasks have ${graceMs / 1000} s`)
      stopping.abort()
      void host.drain('the node is being stopped', graceMs).then(resolve)
    }
    process.on('SIGTERM', () => stop('SIGTERM'))
    process.on('SIGINT', () => stop('Ctrl-C'))
  })
}

function printToken(out: string | undefined): number {
  const token = newToken()
  if (out === undefined) {
    process.stdout.write(`${token}\n`)
    return 0
  }
  try {
    // Never over a token that is in use.
    writeFileSync(out, `${token}\n`, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    throw new ManyworldsError(
      'CONFIG_INVALID',
      code === 'EEXIST' ? `${out} is there already, and is not overwritten` : message,
      { cause },
    )
  }
  process.stderr.write(`wrote a new token to ${out}; copy it to the nodes and to the driver\n`)
  return 0
}

function tokenFrom(path: string): string {
  const token = readToken(path, '--token-file')
  if (isReadableByOthers(path)) log(`others on this machine can read the token: chmod 600 ${path}`)
  return token
}

function read(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new ManyworldsError('CONFIG_INVALID', `${path} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

const list = (text: string | undefined) =>
  text
    ?.split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
