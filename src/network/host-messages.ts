import * as z from 'zod/mini'
import { MAX_BLOB_BYTES } from '../blobs.ts'
import { LEASE_MS, MAX_BUNDLE_BYTES } from './limits.ts'

/** All messages between a driver and a host about workers, code and blobs. Frames of workers are not among them. */

const count = z.number().check(z.int(), z.minimum(0), z.maximum(100_000))
const id = z.number().check(z.int(), z.minimum(1), z.maximum(2 ** 32 - 1))
const bytes = z.number().check(z.int(), z.minimum(0), z.maximum(MAX_BUNDLE_BYTES))
const text = (max = 1000) => z.string().check(z.maxLength(max))
const blobBytes = z.number().check(z.int(), z.minimum(0), z.maximum(MAX_BLOB_BYTES))
const sha256 = z.string().check(z.regex(/^[0-9a-f]{64}$/))
/** Up to 2 ** 22 on Linux. */
const pid = z.number().check(z.int(), z.minimum(1), z.maximum(2 ** 31 - 1))
/** See `same-machine.ts`. */
const machine = z.optional(sha256)
const credit = z.object({ type: z.literal('credit'), worker: id, bytes })

/** How a host introduces itself. */
const hostInfo = z.object({
  host: text(),
  pid,
  machine,
  /** After this time without a word of its driver, it ends the driver's workers. */
  leaseMs: z.number().check(z.int(), z.minimum(1), z.maximum(LEASE_MS)),
  version: text(64),
  node: text(64),
  platform: text(64),
  cores: count,
  memoryMb: z.number(),
  /** The most workers it may run, for all drivers together. */
  workers: count,
  labels: z.array(text(200)).check(z.maxLength(100)),
  /** The number of the slot, if the host is one. */
  slot: z.optional(count),
})
export type HostInfo = z.output<typeof hostInfo>

const driverMessage = z.discriminatedUnion('type', [
  /** How to start workers; sent once. */
  z.object({
    type: z.literal('place'),
    driver: text(),
    pid,
    machine,
    runtime: sha256,
    execArgv: z.array(text(4000)).check(z.maxLength(100)),
    env: z.record(text(), text(1024 * 1024)),
    output: z.enum(['drop', 'show']),
  }),
  /** Keep this many workers. */
  z.object({ type: z.literal('workers'), workers: count }),
  z.object({ type: z.literal('kill'), worker: id }),
  /** Offers code. The answer is `have`, `send` or `refuse`. */
  z.object({ type: z.literal('offer'), sha256, bytes }),
  /** Offers a blob, one at a time. The answer is `blob-have`, `blob-send` or `blob-refuse`. */
  z.object({ type: z.literal('blob-offer'), sha256, bytes: blobBytes }),
  z.object({ type: z.literal('blob-drop'), sha256 }),
  credit,
  /** The driver is done. */
  z.object({ type: z.literal('bye') }),
])
export type DriverToHost = z.output<typeof driverMessage>

const workerExit = z.object({
  code: z.nullable(z.number()),
  signal: z.nullable(text(40)),
  reason: z.optional(text()),
  lastWords: z.optional(text(100_000)),
  stderr: z.optional(text(10_000)),
})

const hostMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('host'), info: hostInfo }),
  z.object({ type: z.literal('started'), worker: id, place: count, pid: z.optional(pid) }),
  z.object({ type: z.literal('ended'), worker: id, exit: workerExit }),
  /** No worker can be started here. */
  z.object({ type: z.literal('failed'), reason: text(10_000) }),
  z.object({ type: z.literal('have'), sha256 }),
  z.object({ type: z.literal('send'), sha256 }),
  z.object({ type: z.literal('refuse'), sha256, reason: text() }),
  z.object({ type: z.literal('blob-have'), sha256 }),
  z.object({ type: z.literal('blob-send'), sha256 }),
  /** May come after a part of it has arrived. The host ignores the rest. */
  z.object({ type: z.literal('blob-refuse'), sha256, reason: text() }),
  /** This host is going away: its workers must get no new tasks. */
  z.object({ type: z.literal('drain'), reason: text() }),
  /** Lines that a worker printed outside of any task. */
  z.object({ type: z.literal('output'), place: count, text: text(1024 * 1024) }),
  z.object({ type: z.literal('notice'), line: text() }),
  /** Another driver waits for workers that this one keeps idle. */
  z.object({ type: z.literal('others-wait') }),
  credit,
  z.object({ type: z.literal('bye'), reason: text() }),
])
export type HostToDriver = z.output<typeof hostMessage>

/** The answer to a caller whose role is `status`. */
export const hostStatus = z.object({
  type: z.literal('status'),
  info: hostInfo,
  upSeconds: z.number(),
  draining: z.boolean(),
  loadAverage: z.number(),
  freeMemoryMb: z.number(),
  drivers: z.array(
    z.object({
      driver: text(),
      connected: z.boolean(),
      wanted: count,
      workers: count,
      tasks: count,
      seconds: z.number(),
    }),
  ),
})
export type HostStatus = z.output<typeof hostStatus>

export const parseDriverMessage = (bytes: Buffer): DriverToHost | undefined => parse(driverMessage, bytes)
export const parseHostMessage = (bytes: Buffer): HostToDriver | undefined => parse(hostMessage, bytes)

/** Undefined if the message is malformed. */
export function parse<Schema extends z.ZodMiniType>(schema: Schema, bytes: Buffer): z.output<Schema> | undefined {
  try {
    const result = schema.safeParse(JSON.parse(bytes.toString()))
    return result.success ? result.data : undefined
  } catch {
    return undefined
  }
}
