import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** What happened to one request. */
export interface RequestRecord {
  /** From 0, in the order in which they came. */
  readonly number: number
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The exact text of the body. */
  readonly body: string
  /** Of the body's bytes. */
  readonly sha256: string
  /** Undefined: the body has none. */
  readonly model: string | undefined
  /** Milliseconds since 1970, when the request was complete. */
  readonly at: number
  /** Of the answer; undefined until there is one, and if its connection was cut before. */
  readonly status: number | undefined
  /** The scenario that answered, or `window` for a 429 of the rate limit. */
  readonly answeredBy: string
  /** `open`: not yet; `sent`: all of it; `broken`: the server ended it, as its scenario says; `left`: the client went away first. */
  readonly end: 'open' | 'sent' | 'broken' | 'left'
}

export interface RequestFilter {
  readonly path?: string
  readonly model?: string
  /** Text that the body contains. */
  readonly body?: string
}

export interface ModelServerStats {
  readonly requests: number
  /** Answers with status 200 that are what they should be, sent to the end: calls that cost money. */
  readonly succeeded: number
  /** Answers with status 429. */
  readonly rateLimited: number
  readonly left: number
  readonly inFlight: number
  readonly maxInFlight: number
  readonly byPath: Readonly<Record<string, number>>
  readonly byModel: Readonly<Record<string, number>>
  /** By status; `none` for those that got none. */
  readonly byStatus: Readonly<Record<string, number>>
  /** Bodies that succeeded more than once, by their sha256. */
  readonly paidTwice: Readonly<Record<string, number>>
}

interface Entry extends Omit<RequestRecord, 'status' | 'answeredBy' | 'end'> {
  status: number | undefined
  answeredBy: string
  end: RequestRecord['end']
  succeeded: boolean
}

export type Arrival = Pick<RequestRecord, 'path' | 'headers' | 'model'> & { readonly bytes: Buffer }

export class Journal {
  readonly #entries: Entry[] = []
  readonly #seen = new Map<string, number>()
  #inFlight = 0
  #maxInFlight = 0

  add({ bytes, ...arrival }: Arrival): Entry {
    const entry: Entry = {
      ...arrival,
      number: this.#entries.length,
      body: bytes.toString('utf8'),
      sha256: hash('sha256', bytes),
      at: Date.now(),
      status: undefined,
      answeredBy: '',
      end: 'open',
      succeeded: false,
    }
    this.#entries.push(entry)
    this.#maxInFlight = Math.max(this.#maxInFlight, ++this.#inFlight)
    return entry
  }

  /** How often the key was counted. */
  seen(key: string): number {
    return this.#seen.get(key) ?? 0
  }

  count(key: string): void {
    this.#seen.set(key, this.seen(key) + 1)
  }

  close(entry: Entry, end: 'sent' | 'broken' | 'left'): void {
    entry.end = end
    this.#inFlight--
  }

  requests({ path, model, body }: RequestFilter): RequestRecord[] {
    return this.#entries
      .filter((entry) => path === undefined || entry.path === path)
      .filter((entry) => model === undefined || entry.model === model)
      .filter((entry) => body === undefined || entry.body.includes(body))
      .map(({ succeeded: _, ...record }) => record)
  }

  stats(): ModelServerStats {
    const paid = this.#entries.filter(({ end, succeeded }) => end === 'sent' && succeeded)
    const twice = Object.entries(tally(paid.map(({ sha256 }) => sha256))).filter(([, count]) => count > 1)
    return {
      requests: this.#entries.length,
      succeeded: paid.length,
      rateLimited: this.#entries.filter(({ status }) => status === 429).length,
      left: this.#entries.filter(({ end }) => end === 'left').length,
      inFlight: this.#inFlight,
      maxInFlight: this.#maxInFlight,
      byPath: tally(this.#entries.map(({ path }) => path)),
      byModel: tally(this.#entries.map(({ model }) => model ?? 'none')),
      byStatus: tally(this.#entries.map(({ status }) => String(status ?? 'none'))),
      paidTwice: Object.fromEntries(twice),
    }
  }
}

function tally(keys: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return Object.fromEntries(counts)
}
