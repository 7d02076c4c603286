import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { pids } from '../support/process-tree.ts'

/** Processes that have this in their environment, with their command lines. */
export function marked(mark: string): string[] {
  return pids().flatMap((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'utf8').includes(mark)) return []
      return [`${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`]
    } catch {
      return []
    }
  })
}

export interface StormProxy {
  readonly port: number
  /** Bytes stop without a word, as when a cable is pulled. */
  cut(): void
  /** What was there is gone; what is new passes. */
  mend(): void
  reset(): void
  close(): void
}

/** Between two ends, so that their link can be cut. */
export async function startProxy(to: number): Promise<StormProxy> {
  const pairs = new Set<[Socket, Socket]>()
  let cut = false
  const server = createServer((near) => {
    const far = connect(to, '127.0.0.1')
    const pair: [Socket, Socket] = [near, far]
    pairs.add(pair)
    for (const [from, other] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('error', () => {})
      from.on('data', (data) => {
        if (cut || other.write(data)) return
        from.pause()
        other.once('drain', () => from.resume())
      })
      from.on('close', () => {
        pairs.delete(pair)
        // While it is cut, the other end does not hear of it.
        if (!cut) other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const reset = () => {
    for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy()
    pairs.clear()
  }
  return {
    port: (server.address() as { port: number }).port,
    cut: () => {
      cut = true
    },
    mend: () => {
      cut = false
      reset()
    },
    reset,
    close: () => {
      reset()
      server.close()
    },
  }
}
