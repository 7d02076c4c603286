import { execFileSync } from 'node:child_process'

/** A network of its own for each node, as if it were another machine: an address, and a cable to this one. */
export interface Namespace {
  readonly name: string
  readonly address: string
  /** What stands before a command that is to run in it. */
  readonly enter: readonly string[]
  /** Pulls the cable, and plugs it in again. */
  plug(connected: boolean): void
  remove(): void
}

const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] })

/** Why this machine cannot do that; undefined if it can. */
export function whyNoNamespaces(): string | undefined {
  if (process.platform !== 'linux') return 'only Linux has network namespaces'
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  const name = `mw-probe-${process.pid}`
  try {
    ip('netns', 'add', name)
    ip('link', 'add', `mwp${process.pid % 100_000}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
    return undefined
  } catch (error) {
    return `ip netns does not work here: ${(error as Error).message.trim().split('\n').at(-1)}`
  } finally {
    try {
      ip('netns', 'del', name)
    } catch {
      // It was never there.
    }
  }
}

export function makeNamespace(number: number): Namespace {
  const id = (process.pid % 10_000) * 10 + number
  const name = `mw-test-${id}`
  const cable = `mwt${id}`
  // Two addresses each, of a range that is meant for tests of networks. Another test run on this machine has others.
  const own = process.pid % 8192
  const net = `198.${18 + (own >> 12)}.${(own >> 4) % 256}`
  const low = (own % 16) * 16 + number * 4
  const [here, there] = [`${net}.${low + 1}`, `${net}.${low + 2}`]
  ip('netns', 'add', name)
  ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
  ip('addr', 'add', `${here}/30`, 'dev', cable)
  ip('link', 'set', cable, 'up')
  const inside = (...args: string[]) => ip('-n', name, ...args)
  inside('link', 'set', 'lo', 'up')
  inside('addr', 'add', `${there}/30`, 'dev', 'eth0')
  inside('link', 'set', 'eth0', 'up')
  return {
    name,
    address: there,
    enter: ['ip', 'netns', 'exec', name],
    plug: (connected) => ip('link', 'set', cable, connected ? 'up' : 'down'),
    remove: () => ip('netns', 'del', name),
  }
}
