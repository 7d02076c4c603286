import { connect, createServer, type Socket } from 'node:net'

/** A network between a client and a server, with a plug that can be pulled. */
export interface Network {
  readonly port: number
  /** How many connections there have been. */
  readonly connections: number
  /** Bytes that have come from the server. */
  readonly bytes: number
  /** Ends all connections, without a word. */
  cut(): void
  /** New connections are refused from now on, or no more. */
  refuse(refused: boolean): void
  close(): Promise<void>
}

/** `cutAfter`: ends a connection when that many bytes have come from the server, as long as it says a number. */
export async function startProxy(
  target: number,
  cutAfter: () => number | undefined = () => undefined,
): Promise<Network> {
  const open = new Set<Socket>()
  let [connections, bytes, refused] = [0, 0, false]
  const server = createServer((client) => {
    if (refused) return void client.resetAndDestroy()
    connections++
    const upstream = connect(target, '127.0.0.1')
    const both = [client, upstream]
    const end = () => {
      for (const socket of both) {
        open.delete(socket)
        socket.resetAndDestroy()
      }
    }
    for (const socket of both) {
      open.add(socket)
      socket.on('error', end).on('close', end)
    }
    let left = cutAfter()
    upstream.on('data', (data) => {
      bytes += data.byteLength
      if (left !== undefined && (left -= data.byteLength) <= 0) end()
    })
    client.pipe(upstream)
    upstream.pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const cut = () => {
    for (const socket of open) socket.resetAndDestroy()
  }
  return {
    port,
    get connections() {
      return connections
    },
    get bytes() {
      return bytes
    },
    cut,
    refuse: (now) => {
      refused = now
    },
    close: () => {
      cut()
      return new Promise((resolve) => void server.close(() => resolve()))
    },
  }
}
