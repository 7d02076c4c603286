import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault } from './faults.ts'
import { inPieces, type Payload } from './payload.ts'

/** An answer that is sent slowly, or not to its end, is sent in so many pieces. */
const PIECES = 8

export interface Delivery {
  readonly payload: Payload
  /** Between two pieces. */
  readonly dripMs: number
  readonly broken: Extract<Fault, { kind: 'ending' }> | undefined
}

const brokenOff = new WeakSet<ServerResponse>()

/** Whether the server ended this answer before its end, rather than the client. */
export const wasBrokenOff = (response: ServerResponse): boolean => brokenOff.has(response)

/** Sends an answer, or what the fault leaves of it. Returns when all is written, or the client has left. */
export async function send(response: ServerResponse, { payload, dripMs, broken }: Delivery): Promise<void> {
  if (broken?.at === 'headers') return breakOff(response, broken)
  if (broken === undefined && dripMs === 0 && payload.chunks.length === 1) return sendWhole(response, payload)
  const { status, headers, chunks } = inPieces(payload, PIECES)
  const size = broken?.sized === true ? { 'content-length': String(Buffer.byteLength(chunks.join(''))) } : {}
  response.writeHead(status, { ...headers, ...size })
  const closed = once(response, 'close')
  const sent = broken === undefined ? chunks : chunks.slice(0, Math.max(1, Math.floor(chunks.length / 2)))
  for (const [index, chunk] of sent.entries()) {
    if (index > 0 && dripMs > 0) await sleep(dripMs)
    if (response.destroyed) return
    // Until it is on its way: a cut would take along what is still here.
    await Promise.race([closed, new Promise<unknown>((resolve) => response.write(chunk, resolve))])
  }
  if (broken === undefined) response.end()
  else if (!response.destroyed) breakOff(response, broken)
}

function sendWhole(response: ServerResponse, { status, headers, chunks }: Payload): void {
  const bytes = Buffer.from(chunks.join(''))
  response.writeHead(status, { ...headers, 'content-length': String(bytes.byteLength) }).end(bytes)
}

function breakOff(response: ServerResponse, { how }: NonNullable<Delivery['broken']>): void {
  // The client decides how long it waits.
  if (how === 'hang') return
  brokenOff.add(response)
  if (how === 'eof') response.end()
  else if (how === 'cut') response.socket?.destroy()
  else response.socket?.resetAndDestroy()
}
