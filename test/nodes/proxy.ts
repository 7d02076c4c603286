import { createServer, connect as netConnect, type Server, type Socket } from 'node:net'

interface ProxyOptions {
  /** Each connection is reset so long after the node's first words: on a slow machine, too, something gets through. */
  readonly resetAfterMs?: number
  /** Each connection is reset when so many bytes have passed. */
  readonly resetAfterBytes?: number
}

/** Between driver and node, so that the link can be cut: bytes stop without a word, as when a cable is pulled. */
export async function startProxy(to: number, { resetAfterMs, resetAfterBytes }: ProxyOptions = {}) {
  const pairs = new Set<[Socket, Socket]>()
  let cut = false
  let port = 0
  let connections = 0
  const server: Server = createServer((near) => {
    connections++
    const far = netConnect(to, '127.0.0.1')
    const pair: [Socket, Socket] = [near, far]
    pairs.add(pair)
    const reset = () => {
      pairs.delete(pair)
      for (const socket of pair) socket.resetAndDestroy()
    }
    if (resetAfterMs !== undefined) far.once('data', () => setTimeout(reset, resetAfterMs))
    let bytes = 0
    for (const [from, other] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('error', () => {})
      from.on('data', (data) => {
        if (!cut) other.write(data)
        bytes += data.byteLength
        if (resetAfterBytes !== undefined && bytes >= resetAfterBytes) reset()
      })
      from.on('close', () => {
        pairs.delete(pair)
        // While it is cut, the other end does not hear of it.
        if (!cut) other.destroy()
      })
    }
  })
  const listen = () => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  await listen()
  port = (server.address() as { port: number }).port
  const destroyAll = () => {
    for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy()
    pairs.clear()
  }
  return {
    port,
    get connections() {
      return connections
    },
    cut: () => {
      cut = true
    },
    /** What was there is gone; what is new passes. */
    mend: () => {
      cut = false
      destroyAll()
    },
    /** Ends as a proxy that crashes: who has called sees a reset, and new calls are refused. The node need not see it. */
    crash: ({ unseen }: { unseen: boolean }) => {
      server.close()
      if (unseen) cut = true
      for (const [near, far] of pairs) {
        near.resetAndDestroy()
        if (!unseen) far.resetAndDestroy()
      }
    },
    /** Is there again after a crash. */
    restart: listen,
    close: () => {
      destroyAll()
      server.close()
    },
  }
}
