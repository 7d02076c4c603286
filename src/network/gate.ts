import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { WebSocketServer } from 'ws'
import { answerCall, type Hello, Refusal } from './handshake.ts'
import { HANDSHAKE_MS, MAX_MESSAGE_BYTES, NETWORK_PATH } from './limits.ts'
import { Peer } from './peer.ts'
import { plainly } from './tls-words.ts'

export interface ServerTls {
  readonly cert: Buffer | string
  readonly key: Buffer | string
  /** Those who call must show a certificate that one of these has signed. */
  readonly clientCa?: Buffer | string | undefined
}

export interface GateOptions {
  readonly host: string
  readonly port: number
  readonly token: string | undefined
  readonly tls: ServerTls | undefined
  readonly maxConnections: number
  /** How many messages of that session are here already. Throws a Refusal. */
  admit(hello: Hello): number
  /** Somebody who has proved to know the token. */
  accept(peer: Peer, hello: Hello): void
  /** Somebody who was sent away, and why: one line. */
  refused(line: string): void
}

export interface Gate {
  readonly port: number
  keepAlive(alive: boolean): void
  /** Takes no more calls; those that were accepted go on. */
  close(): void
}

/** Listens for those who call: drivers call a host, nodes call a driver. */
export async function openGate(options: GateOptions): Promise<Gate> {
  const { tls, host, port, maxConnections } = options
  const limits = {
    // Whoever connects and says nothing is not kept.
    headersTimeout: HANDSHAKE_MS,
    requestTimeout: HANDSHAKE_MS,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: 8 * 1024,
  }
  const server = tls
    ? createTlsServer({
        ...{ ...limits, cert: tls.cert, key: tls.key, handshakeTimeout: HANDSHAKE_MS, minVersion: 'TLSv1.2' },
        ...(tls.clientCa === undefined ? {} : { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true }),
      })
    : createServer(limits)
  // A few more than are served, so that those can be told why not.
  server.maxConnections = maxConnections + 16
  const sockets = new WebSocketServer({
    ...{ noServer: true, maxPayload: MAX_MESSAGE_BYTES, perMessageDeflate: false },
    // A peer does that itself.
    autoPong: false,
  })
  sockets.on('wsClientError', (_error, socket) => socket.destroy())

  server.on('request', (_request, response) => {
    response
      .writeHead(426, { 'content-type': 'text/plain', connection: 'close' })
      .end('manyworlds speaks WebSocket here\n')
  })
  server.on('tlsClientError', (error: Error, socket: Socket) => {
    options.refused(`${socket.remoteAddress ?? 'somebody'}: no TLS connection: ${plainly(error.message)}`)
  })
  server.on('clientError', (_error: Error, socket: Socket) => socket.destroy())
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => {})
    const full = sockets.clients.size >= maxConnections
    const why = full ? `${maxConnections} connections are there already, which is the limit` : whyNotUpgrade(request)
    if (why !== undefined) {
      options.refused(`${socket.remoteAddress ?? 'somebody'}: ${why}`)
      // Nobody reads this socket any more, so nobody would see its other end close it.
      socket.end(
        `HTTP/1.1 ${full ? '503 Too many connections' : '403 Forbidden'}\r\nconnection: close\r\n\r\n${why}\n`,
        () => socket.destroy(),
      )
      return
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const from = socket.remoteAddress ?? 'somebody'
      const peer = new Peer(webSocket, from, (alive) => void (alive ? socket.ref() : socket.unref()))
      const known = peer.limitStranger(socket)
      answerCall(peer, options).then(
        (hello) => {
          known()
          options.accept(peer, hello)
        },
        (error: Error) => {
          // A broken connection explains itself; a session that is gone is the other end's to handle.
          if (!(error instanceof Refusal && error.code === 'SESSION_GONE')) options.refused(`${from}: ${error.message}`)
        },
      )
    })
  })

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  server.on('error', (error: Error) => options.refused(error.message))
  return {
    port: (server.address() as AddressInfo).port,
    keepAlive: (alive) => void (alive ? server.ref() : server.unref()),
    close: () => void server.close(),
  }
}

function whyNotUpgrade({ headers, url }: IncomingMessage): string | undefined {
  // Every web page may open a WebSocket to any address, also to this machine's own. Browsers say that they are one.
  if (headers.origin !== undefined) return 'a browser has no business here'
  if (headers.upgrade?.toLowerCase() !== 'websocket') return 'only WebSocket is spoken here'
  if (url?.split('?', 1)[0] !== NETWORK_PATH) return `there is nothing at this path; use ${NETWORK_PATH}`
  return undefined
}
