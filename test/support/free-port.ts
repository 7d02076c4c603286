import { createServer } from 'node:net'

/** Below the range from which systems take the ports of clients. Test files that run at the same time have ports of their own. */
const [LOWEST, FILES, COUNT] = [20_000, 8, 1500]
const FIRST = LOWEST + (Number(process.env.VITEST_POOL_ID ?? 0) % FILES) * COUNT
const TRIES = 20

/**
 * One that was free a moment ago, and that no connection gets by chance: a server that ends can be started there again. With
 * `count`, so many in a row, of which this is the first.
 */
export async function freePort(count = 1): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = FIRST + Math.floor(Math.random() * COUNT)
    const free = await Promise.all(Array.from({ length: count }, (_, place) => isFree(port + place)))
    if (!free.includes(false)) return port
  }
  throw new Error(`none of ${TRIES} ports from ${FIRST} on is free`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const listens = await new Promise<boolean>((resolve) =>
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)),
  )
  if (listens) await new Promise((resolve) => server.close(resolve))
  return listens
}
