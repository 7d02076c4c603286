import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { WebSocketServer } from 'ws'
import { SEAL_BYTES } from './channel.ts'
import { tlsWords } from './error-words.ts'
import { answerCall, type Hello, Refusal } from './handshake.ts'
import { HANDSHAKE_MS, MAX_MESSAGE_BYTES, NETWORK_PATH } from './limits.ts'
import { Peer } from './peer.ts'

export interface ServerTls {
  readonly cert: Buffer | string
  readonly key: Buffer | string
  /** Callers must show a certificate signed by one of these CAs. */
  readonly clientCa?: Buffer | string | undefined
}

export interface GateOptions {
  readonly host: string
  readonly port: number
  readonly token: string
  readonly tls: ServerTls | undefined
  readonly maxConnections: number
  /** Returns how many messages of that session have arrived. Throws a Refusal. */
  admit(hello: Hello): number
  /** A caller has proved that it knows the token. */
  accept(peer: Peer, hello: Hello): void
  /** A caller was refused: one line with the reason. */
  refused(line: string): void
}

export interface Gate {
  readonly port: number
  keepAlive(alive: boolean): void
  /** Accepts no more connections; accepted ones go on. */
  close(): void
}

/** Listens for connections: drivers call a host, joining nodes call a driver. */
export async function openGate(options: GateOptions): Promise<Gate> {
  const { tls, host, port, maxConnections } = options
  const limits = {
    // Close connections that send nothing.
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
  // Accept a few more than are served, so that they can be told why they are refused.
  server.maxConnections = maxConnections + 16
  const sockets = new WebSocketServer({
    ...{ noServer: true, maxPayload: MAX_MESSAGE_BYTES + SEAL_BYTES, perMessageDeflate: false },
    // Peer enforces the limit itself.
    autoPong: false,
  })
  sockets.on('wsClientError', (_error, socket) => socket.destroy())

  server.on('request', (_request, response) => {
    response
      .writeHead(426, { 'content-type': 'text/plain', connection: 'close' })
      .end('manyworlds speaks WebSocket here\n')
  })
  server.on('tlsClientError', (error: Error, socket: Socket) => {
    options.refused(`${socket.remoteAddress ?? 'somebody'}: no TLS connection: ${tlsWords(error.message)}`)
  })
  server.on('clientError', (_error: Error, socket: Socket) => socket.destroy())
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => {})
    const full = sockets.clients.size >= maxConnections
    const why = full ? `${maxConnections} connections are there already, which is the limit` : whyNotUpgrade(request)
    if (why !== undefined) {
      options.refused(`${socket.remoteAddress ?? 'somebody'}: ${why}`)
      // Nothing reads this socket any more, so its end would go unnoticed.
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
          // Don't report a session that is gone: the other end handles that.
          if (!(error instanceof Refusal && error.code.startsWith('SESSION_')))
            options.refused(`${from}: ${error.message}`)
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
  // Any web page may open a WebSocket to any address, also to loopback. Browsers reveal themselves by the Origin header.
  if (headers.origin !== undefined) return 'browsers are not allowed to connect (Origin header)'
  if (headers.upgrade?.toLowerCase() !== 'websocket') return 'this port only accepts WebSocket connections'
  if (url?.split('?', 1)[0] !== NETWORK_PATH) return `unknown path; use ${NETWORK_PATH}`
  return undefined
}
