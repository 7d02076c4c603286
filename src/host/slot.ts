import { rmSync } from 'node:fs'
import { connect } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { guardExit } from '../guard-exit.ts'
import { type Address, showAddress } from '../network/address.ts'
import type { DialError } from '../network/dial.ts'
import { privateFolder } from '../private-folder.ts'
import { joinDriver } from './join.ts'
import { NodeHost } from './node-host.ts'
import { DRIVER_UNREACHABLE, type SlotOrder, type Unreachable } from './slot-order.ts'

/**
 * The program of a slot: a host with one worker, in the place of one task of somebody else's scheduler. Whoever loads it leaves
 * what it is to do on `globalThis`; a line of output says that it is done. Everything else goes to stderr.
 */

/** How long a driver is called that does not answer. A second slot is started in place of one that has given up. */
const GIVE_UP_MS = 5000
/**
 * It listens before slots are started: where nobody does, it has ended, or it is another machine. Spark starts a slot four times
 * that fails, and each time has its core.
 */
const ABSENT_MS = 300
const PARENT_LOOK_MS = 250
const HEARD_MS = 500
const PROBE_MS = 2000
const UNREACHABLE = 75

guardExit()

const parent = process.ppid
// When what has started this is killed, nobody tells its children. Nobody reads an exit code either.
setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL')
}, PARENT_LOOK_MS).unref()

interface Loaded {
  readonly slot: string
  readonly orders: string
  /** The folder that this came in. */
  readonly folder: string
}
const { slot, orders, folder } = (globalThis as unknown as { manyworldsSlot: Loaded }).manyworldsSlot
rmSync(folder, { recursive: true, force: true })
await work(slot, JSON.parse(orders))
process.exit(0)

async function work(slot: string, order: SlotOrder): Promise<void> {
  const log = (text: string) => void process.stderr.write(`${text}\n`)
  const host = new NodeHost({
    workers: 1,
    slot: Number(slot),
    cacheFolder: applicationFolder('manyworlds-bundles'),
    sharedBlobs: applicationFolder('manyworlds-blobs'),
    // The driver sees the connection end when this process does: then nothing is left of it here.
    beforeGoodbye: async () => {
      await host.removeWorkFolder()
      await new Promise<void>((resolve) => process.stdout.write(`${slot}\tdone\n`, () => resolve()))
      process.exit(0)
    },
    log,
  })
  await host.prepare()
  try {
    const address = await findDriver(order)
    await joinDriver(host, {
      ...{ address, token: order.token, tls: order.tls, giveUpMs: GIVE_UP_MS, stay: false },
      absentMs: ABSENT_MS,
      ...{ signal: new AbortController().signal, log },
    })
  } catch (error) {
    await host.close('the driver is gone')
    // A driver that was there and has ended wants no other slot in place of this one.
    if (host.served && ((error as Error).cause as DialError | undefined)?.nobodyThere) return
    const tried = order.hosts.map((name) => showAddress({ host: name, port: order.port })).join(', ')
    const words: Unreachable = { from: hostname(), tried, why: (error as Error).message }
    log(`${DRIVER_UNREACHABLE} ${JSON.stringify(words)}`)
    // Spark may not have read it yet when it sees the end.
    await sleep(HEARD_MS)
    process.exit(UNREACHABLE)
  }
}

/** In the folder that the scheduler has made for this application, and removes with it; undefined if that is open to others. */
function applicationFolder(name: string): string | undefined {
  try {
    return privateFolder(join(process.cwd(), name))
  } catch {
    return undefined
  }
}

/** The first address at which somebody answers; the first of all if they are silent. Throws at once if nobody listens anywhere. */
async function findDriver({ hosts, port, tls }: SlotOrder): Promise<Address> {
  const addresses = hosts.map((host) => ({ host, port, secure: tls !== undefined }))
  for (const end = Date.now() + GIVE_UP_MS; Date.now() < end; await sleep(PARENT_LOOK_MS)) {
    let silent = false
    const probes = addresses.map(async (address) => {
      const found = await probe(address)
      if (found === 'silent') silent = true
      return found === 'listens' ? address : Promise.reject(found)
    })
    const first = await Promise.any(probes).catch(() => undefined)
    if (first !== undefined) return first
    if (!silent) throw new Error('nobody listens there')
    // Nothing to choose from: whoever calls it will say what is wrong.
    if (addresses.length === 1) break
  }
  return addresses[0]!
}

function probe({ host, port }: Address): Promise<'listens' | 'nobody' | 'silent'> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: PROBE_MS })
    const say = (what: 'listens' | 'nobody' | 'silent') => {
      socket.destroy()
      resolve(what)
    }
    socket.once('connect', () => say('listens'))
    socket.once('timeout', () => say('silent'))
    // The name of a machine may become known in a moment; a port that is closed stays closed.
    socket.once('error', ({ code = '' }: NodeJS.ErrnoException) =>
      say(/^(ENOTFOUND|EAI_AGAIN)$/.test(code) ? 'silent' : 'nobody'),
    )
  })
}
