import { didYouMean } from '../did-you-mean.ts'
import { ManyworldsError } from '../errors.ts'
import type { BlobAsked, Packed } from '../protocol/messages.ts'
import { pack } from '../protocol/pack.ts'
import { readPacked } from '../protocol/read-packed.ts'
import type { BlobHold, Blobs } from './blobs.ts'
import type { Service, ServiceCall } from './service.ts'
import type { Lease } from './task-entry.ts'

/** The size of a part: large enough to use the bulk lane, which gives way to all other messages. */
const PART_BYTES = 1024 * 1024
const SHA256 = /^[0-9a-f]{64}$/
const MAX_NAME_CHARS = 256

/**
 * Answers what tasks ask about blobs: the current version of a name, whether its bytes are on the worker's machine, and the
 * bytes if they are not. A blob that a task has asked for is held until its lease ends.
 */
export class BlobService implements Service {
  readonly once = false
  readonly durable = false
  readonly atOnce: number = Number.POSITIVE_INFINITY
  readonly unlimited = false
  readonly #blobs: Blobs
  readonly #held = new Map<Lease, Map<string, BlobHold>>()

  constructor(blobs: Blobs) {
    this.#blobs = blobs
  }

  check(body: unknown): void {
    if (!isAsked(readPacked(body))) throw new TypeError('a malformed blob request')
  }

  ask({ lease, body, signal }: ServiceCall): Promise<Packed> | AsyncIterable<Packed> {
    const asked = readPacked(body) as BlobAsked
    switch (asked[0]) {
      case 'open':
        return this.#open(lease, asked[1], signal)
      case 'wait':
        return this.#blobs.brought(asked[1])
      case 'read':
        return this.#read(lease, asked[1], asked[2])
      default:
        return asked satisfies never
    }
  }

  /** The lease is over. */
  drop(lease: Lease): void {
    const held = this.#held.get(lease)
    if (held === undefined) return
    this.#held.delete(lease)
    for (const hold of held.values()) hold.release()
  }

  async #open(lease: Lease, name: string, signal: AbortSignal): Promise<Packed> {
    const { blobs } = lease.entry.run
    // Their hashes may still be computed.
    if (SHA256.test(name) && !this.#blobs.find(name)) await blobs?.ready()
    const named = blobs?.current(name)
    const content = named ? (await named).content : this.#blobs.find(name)
    if (content === undefined) throw SHA256.test(name) ? gone(name) : unknown(name, blobs?.names ?? [])
    // If the request is over, don't hold the blob: nothing would release it.
    if (!signal.aborted) this.#hold(lease, this.#blobs.hold(content))
    return pack({ sha256: content.sha256, bytes: content.bytes.byteLength })
  }

  #hold(lease: Lease, hold: BlobHold): void {
    let held = this.#held.get(lease)
    if (held === undefined) this.#held.set(lease, (held = new Map()))
    const { sha256 } = hold.content
    if (held.has(sha256)) hold.release()
    else held.set(sha256, hold)
  }

  async *#read(lease: Lease, sha256: string, from: number): AsyncGenerator<Packed> {
    const content = this.#held.get(lease)?.get(sha256)?.content
    if (content === undefined) throw gone(sha256)
    const { bytes } = content
    for (let at = from; at < bytes.byteLength; at += PART_BYTES) yield pack(bytes.subarray(at, at + PART_BYTES))
  }
}

function isAsked(asked: unknown): asked is BlobAsked {
  if (!Array.isArray(asked)) return false
  const [what, name, from] = asked as unknown[]
  if (typeof name !== 'string') return false
  if (what === 'open') return asked.length === 2 && name.length <= MAX_NAME_CHARS
  if (!SHA256.test(name)) return false
  if (what === 'wait') return asked.length === 2
  return what === 'read' && asked.length === 3 && Number.isSafeInteger(from) && (from as number) >= 0
}

function unknown(name: string, names: readonly string[]): ManyworldsError {
  const there = names.length === 0 ? 'the run has none' : `the run has ${names.join(', ')}`
  const hint = `${didYouMean(name, names)}; ${there}. Add it to \`blobs\` in the run configuration`
  return new ManyworldsError('BLOB_UNKNOWN', `there is no blob '${name}'${hint}`)
}

const gone = (sha256: string) =>
  new ManyworldsError(
    'BLOB_GONE',
    `the blob ${sha256} is no longer available: its run is over, or it was replaced; ask for it by name, or add it to \`blobs\` of this run`,
  )
