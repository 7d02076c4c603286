import { rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { guardExit } from '../guard-exit.ts'
import { type Address, showAddress } from '../network/address.ts'
import type { DialError } from '../network/dial.ts'
import { probeTcp } from '../network/tcp-probe.ts'
import { privateFolder } from '../private-folder.ts'
import { joinDriver } from './join.ts'
import { NodeHost } from './node-host.ts'
import { DRIVER_UNREACHABLE, type SlotInstructions, type Unreachable } from './slot-instructions.ts'

/**
 * The program of a slot: a host with one worker, run as one task of a foreign scheduler. The loader puts the instructions on
 * `globalThis`; a line on stdout reports the end. Everything else goes to stderr.
 */

/** How long to call a driver that does not answer. A slot that gives up is replaced by another one. */
const GIVE_UP_MS = 5000
/**
 * The same if nothing listens there. The driver listens before slots are started, so it has ended, or the address belongs to
 * another machine. Spark starts a failing slot four times, and each start occupies a core.
 */
const ABSENT_MS = 300
const PARENT_LOOK_MS = 250
/** For the end of the worker, and of the connection. */
const CLOSE_MS = 1000
const HEARD_MS = 500
const PROBE_MS = 2000
const UNREACHABLE = 75

guardExit()

const parent = process.ppid
let host: NodeHost | undefined
// If the parent is killed, its children are not told. The exit code is not read either.
const watch = setInterval(() => {
  if (process.ppid === parent) return
  clearInterval(watch)
  const end = () => process.kill(process.pid, 'SIGKILL')
  setTimeout(end, CLOSE_MS)
  // So that the driver need not wait for the end of the lease.
  void host?.close('its Spark executor has ended').then(end, end)
}, PARENT_LOOK_MS).unref()

interface Loaded {
  readonly slot: string
  readonly orders: string
  /** The folder of this program. */
  readonly folder: string
}
const { slot, orders, folder } = (globalThis as unknown as { manyworldsSlot: Loaded }).manyworldsSlot
rmSync(folder, { recursive: true, force: true })
await work(slot, JSON.parse(orders))
process.exit(0)

async function work(slot: string, order: SlotInstructions): Promise<void> {
  const log = (text: string) => void process.stderr.write(`${text}\n`)
  const own = new NodeHost({
    workers: 1,
    slot: Number(slot),
    cacheFolder: applicationFolder('manyworlds-bundles'),
    sharedBlobs: applicationFolder('manyworlds-blobs'),
    // The connection closes with this process, so the driver knows that nothing is left here.
    beforeGoodbye: async () => {
      await own.removeWorkFolder()
      await new Promise<void>((resolve) => process.stdout.write(`${slot}\tdone\n`, () => resolve()))
      process.exit(0)
    },
    log,
  })
  host = own
  await own.prepare()
  try {
    const address = await findDriver(order)
    await joinDriver(own, {
      ...{ address, token: order.token, tls: order.tls, giveUpMs: GIVE_UP_MS, stay: false },
      absentMs: ABSENT_MS,
      ...{ signal: new AbortController().signal, log },
    })
  } catch (error) {
    await own.close('the driver is gone')
    // A driver that was connected and has ended needs no replacement of this slot.
    if (own.served && ((error as Error).cause as DialError | undefined)?.nobodyThere) return
    const tried = order.hosts.map((name) => showAddress({ host: name, port: order.port })).join(', ')
    const words: Unreachable = { from: hostname(), tried, why: (error as Error).message }
    log(`${DRIVER_UNREACHABLE} ${JSON.stringify(words)}`)
    // On failure, sleep briefly so that Spark reads stderr before it sees the exit.
    await sleep(HEARD_MS)
    process.exit(UNREACHABLE)
  }
}

/** A folder inside the scheduler's folder for this application, removed with it; undefined if others can write there. */
function applicationFolder(name: string): string | undefined {
  try {
    return privateFolder(join(process.cwd(), name))
  } catch {
    return undefined
  }
}

/** The first address that accepts a connection; the first of the list if all are silent. Throws if all of them refuse. */
async function findDriver({ hosts, port, tls }: SlotInstructions): Promise<Address> {
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
    if (!silent) throw new Error('nothing listens there (ECONNREFUSED)')
    // There is only one address: use it, and the connection attempt will report what is wrong.
    if (addresses.length === 1) break
  }
  return addresses[0]!
}

async function probe(address: Address): Promise<'listens' | 'nobody' | 'silent'> {
  const found = await probeTcp(address, { connectMs: PROBE_MS })
  if (found.outcome !== 'failed') return found.outcome === 'open' ? 'listens' : 'silent'
  // A host name may resolve in a moment; a port that is closed stays closed.
  return /^(ENOTFOUND|EAI_AGAIN)$/.test(found.error.code ?? '') ? 'silent' : 'nobody'
}
