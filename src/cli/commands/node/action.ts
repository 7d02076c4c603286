import { ManyworldsError } from '../../../errors.ts'
import { mustEndWithin } from '../../../guard-exit.ts'
import { joinDriver } from '../../../host/join.ts'
import { listenForDrivers } from '../../../host/listen.ts'
import { NodeHost } from '../../../host/node-host.ts'
import { type Address, parseAddress, showAddress } from '../../../network/address.ts'
import { LEASE_MS } from '../../../network/limits.ts'
import { isReadableByOthers, userToken, whyTokenNeeded } from '../../../network/token.ts'
import { ownPackage } from '../../../own-package.ts'
import { counted } from '../../../text/quantities.ts'
import { wordList } from '../../../text/word-list.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { TOKEN_VARIABLE, tokenOf } from '../../options/access.ts'
import { clientTls, serverTls } from '../../options/certificates.ts'
import { log } from './log.ts'
import type { NodeArgs } from './spec.ts'
import { makeToken } from './token.ts'

/** Runs workers on this machine for drivers on other machines, until it is stopped. */
export async function run(args: NodeArgs): Promise<number> {
  const { action, listen: here, connect: there } = args
  if (action === 'token') {
    if (here !== undefined || there !== undefined)
      throw new UsageError('"manyworlds node token" only makes a token; start the node with another command')
    return makeToken(args.out)
  }
  if (args.out !== undefined) throw new UsageError('--out can only be used with "manyworlds node token"')
  if (args.lease > LEASE_MS)
    throw new UsageError(
      `--lease can be at most ${LEASE_MS / 1000}s: soon after that, drivers start the tasks again on other workers`,
    )
  const way = here ?? there
  if (way === undefined)
    throw new UsageError(
      'give --listen 127.0.0.1:5000 to wait for drivers, or --connect wss://driver:7000 to connect to a driver',
    )
  if (here === undefined && args.clientCa !== undefined)
    throw new UsageError('--client-ca can only be used with --listen')
  const address = parseAddress(way)
  if (typeof address === 'string') throw new UsageError(`--${here === undefined ? 'connect' : 'listen'}: ${address}`)

  const token = readOwnToken(args.tokenFile)
  const work = here === undefined ? join(args, address, token) : listen(args, address, token)
  const host = new NodeHost({
    ...{ log, workers: args.workers, workerMemoryMb: args.workerMemory, maxDrivers: args.maxDrivers },
    ...{ leaseMs: args.lease, cacheFolder: args.cacheDir, packagesFolder: args.packages },
    ...{ labels: wordList(args.labels ?? ''), passEnv: wordList(args.passEnv ?? '') },
  })
  const stopping = new AbortController()
  const stopped = onSignal(host, args.grace, stopping)
  try {
    await prepare(host)
    await Promise.race([work(host, stopping.signal, stopped), stopped])
    if (stopping.signal.aborted) await stopped
    else await host.close('the node has nothing more to do')
  } catch (error) {
    await host.close((error as Error).message)
    throw error
  }
  return 0
}

type Work = (host: NodeHost, signal: AbortSignal, stopped: Promise<void>) => Promise<void>

/** Reads the token and the certificates before the host starts, so that mistakes are reported at once. */
function listen(args: NodeArgs, address: Address, token: string | undefined): Work {
  const { maxConnections } = args
  const tls = serverTls(args)
  if (address.secure !== undefined && address.secure !== (tls !== undefined))
    throw new UsageError(
      tls
        ? '--listen: with --tls-cert the address is wss://, not ws://'
        : '--listen: wss:// needs --tls-cert and --tls-key',
    )
  return async (host, _signal, stopped) => {
    const gate = await listenForDrivers(host, { address, token, tls, maxConnections, log })
    const { workers, labels } = host.info
    const where = `${tls ? 'wss' : 'ws'}://${showAddress({ host: address.host, port: gate.port })}`
    const has = `${counted(workers, 'worker')}${labels.length > 0 ? `, labels ${labels.join(', ')}` : ''}`
    log(`${ownPackage.version} listens on ${where}, ${has}`)
    await stopped.finally(() => gate.close())
  }
}

function join(args: NodeArgs, address: Address, token: string | undefined): Work {
  const { giveUp: giveUpMs, stay } = args
  const needed = whyTokenNeeded(address, token)
  if (needed !== undefined) throw new UsageError(`--connect: ${needed}`)
  if (token === undefined) userToken()
  const tls = clientTls(args)
  const secure = address.secure ?? tls !== undefined
  return async (host, signal) => {
    const where = `${secure ? 'wss' : 'ws'}://${showAddress(address)}`
    log(`${ownPackage.version} joins the driver at ${where}, ${counted(host.info.workers, 'worker')}`)
    await joinDriver(host, { address, token, tls, giveUpMs, stay, signal, log })
    if (!signal.aborted) log('the driver is done')
  }
}

async function prepare(host: NodeHost): Promise<void> {
  try {
    await host.prepare()
  } catch (cause) {
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `cannot use the folder for code and workers: ${(cause as Error).message}; choose another with --cache-dir or TMPDIR`,
      { cause },
    )
  }
}

/** How long workers and connections may take to close after the grace period of the tasks. */
const CLOSE_MS = 10_000

/** Resolves when a signal has stopped the host. */
function onSignal(host: NodeHost, graceMs: number, stopping: AbortController): Promise<void> {
  return new Promise((resolve) => {
    const stop = (signal: string) => {
      if (stopping.signal.aborted) {
        log('stopped at once')
        mustEndWithin(CLOSE_MS)
        void host.close('the node was stopped').then(() => process.exit(0))
        return
      }
      log(`${signal}: no more tasks are accepted; running tasks have ${graceMs / 1000} s to finish`)
      mustEndWithin(graceMs + CLOSE_MS)
      stopping.abort()
      void host.drain('the node is being stopped', graceMs).then(resolve)
    }
    process.on('SIGTERM', () => stop('SIGTERM'))
    process.on('SIGINT', () => stop('Ctrl-C'))
  })
}

/** Reads the token. Warns if other users can read its file. */
function readOwnToken(file: string | undefined): string | undefined {
  const token = tokenOf(file)
  const path = file ?? process.env[TOKEN_VARIABLE]
  if (token !== undefined && path !== undefined && isReadableByOthers(path))
    log(`other users of this machine can read the token; run: chmod 600 ${path}`)
  return token
}
