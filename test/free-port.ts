import { createServer } from 'node:net'

/** Below the range from which systems take the ports of clients. */
const [FIRST, COUNT] = [20_000, 12_000]
const TRIES = 20

/** One that was free a moment ago, and that no connection gets by chance: a server that ends can be started there again. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = FIRST + Math.floor(Math.random() * COUNT)
    if (await isFree(port)) return port
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
