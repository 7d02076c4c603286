import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { ManyworldsError } from '../../../errors.ts'
import { isLoopback, showAddress } from '../../../network/address.ts'
import { listenWords } from '../../../network/error-words.ts'
import type { ServerTls } from '../../../network/gate.ts'
import { newToken, readToken } from '../../../network/token.ts'
import { oneLine } from '../../../text/escape-controls.ts'
import { say } from '../../../text/say.ts'
import { keepMemorySmall, serveViewer, type ViewServer, type ViewServerOptions } from '../../../view/serve.ts'
import { targetOf } from '../../../view/target.ts'
import { stopSignal } from '../../frame/stop-signal.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { serverTls } from '../../options/certificates.ts'
import { hasDesktop, openBrowser } from './open-browser.ts'
import type { ViewArgs } from './spec.ts'
import { writeReport } from './write-report.ts'

const PORT = 5180

/** Serves the viewer until it is stopped. */
export async function run(args: ViewArgs): Promise<number> {
  const { host, port, noOpen, out } = args
  if (out !== undefined) return await writeReport(out, args)
  if (port !== undefined && port > 65_535) throw new UsageError(`--port can be at most 65535, it is ${port}`)
  keepMemorySmall()
  const { place, route, name } = targetOf(args.what, args.dir)
  const tls = serverTls({ ...args, clientCa: undefined })
  const token = tokenFor(args, tls)
  const { signal } = stopSignal()
  const server = await listen({ place, route, host, token, tls }, port)
  process.stdout.write(`showing ${oneLine(name)} at\n${server.url}\n`)
  if (!existsSync(place.path)) say(`${oneLine(place.path)} does not exist yet; runs appear as soon as they start`)
  if (!noOpen && hasDesktop()) openBrowser(server.codeUrl())
  if (!signal.aborted) await once(signal, 'abort')
  await server.close()
  return 0
}

/** Without --port, uses the default port, so that bookmarks keep working, or a free port if it is taken. */
async function listen(options: Omit<ViewServerOptions, 'port'>, port: number | undefined): Promise<ViewServer> {
  const { host } = options
  try {
    return await serveViewer({ ...options, port: port ?? PORT })
  } catch (cause) {
    const problem = cause as NodeJS.ErrnoException
    if (port === undefined && problem.code === 'EADDRINUSE') return await serveViewer({ ...options, port: 0 })
    const why = listenWords(problem)
    const address = showAddress({ host, port: port ?? PORT })
    throw new ManyworldsError('ENGINE_FAILED', `cannot listen on ${address}: ${why}`, { cause })
  }
}

/**
 * If other machines can reach the server, the user must choose the token, and TLS must encrypt it. On loopback, a new
 * token is printed with the URL.
 */
function tokenFor({ host, tokenFile }: ViewArgs, tls: ServerTls | undefined): string {
  if (!isLoopback(host) && (tokenFile === undefined || tls === undefined))
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `refusing to listen on ${host}, which other machines can reach, without a token and TLS: give --token-file (\`manyworlds node token --out token.txt\` makes one), --tls-cert and --tls-key`,
    )
  return tokenFile === undefined ? newToken() : readToken(tokenFile, '--token-file')
}
