import { crc32 } from 'node:zlib'
import type { WorkerLink } from '../engines/engine.ts'

/** One normal frame, and the urgent frames that are sent while it waits. */
export interface LinkStep {
  readonly bytes: number
  /** Sizes of urgent frames (like control messages), which are sent while the next normal frame has to wait. */
  readonly urgent: readonly number[]
  /** How long the worker stops reading after this frame, so that buffers fill up. */
  readonly stallMs: number
  /** The size of the worker's answer. */
  readonly answerBytes: number
}

/** The part of a link that the check needs. */
type CheckedLink = Pick<WorkerLink, 'send' | 'onDrain' | 'onFrame' | 'closed'>

/** The header of a frame: its number, the stall time, the size of the answer. The header of an answer: number, size, CRC. */
const HEADER_BYTES = 12
/** If nothing happens for this long, the link is stuck. */
const STUCK_MS = 30_000

/**
 * Checks what `Channel` relies on, for every link:
 * - after `send` returned `false`, the link reports a drain, whatever else is sent in between, and otherwise it does not;
 * - frames arrive complete and in the order of `send`, in both directions.
 *
 * The other end must answer with `answerTo`, as `link-echo.ts` does. Resolves when every frame was answered; rejects with the
 * first problem.
 */
export async function checkLink(link: CheckedLink, steps: readonly LinkStep[]): Promise<void> {
  const sent: { bytes: number; crc: number; answerBytes: number }[] = []
  let answered = 0
  let waits: PromiseWithResolvers<void> | undefined
  let moved: () => void = () => {}
  let problem: Error | undefined
  const fail = (what: string) => {
    problem ??= new Error(what)
    waits?.resolve()
    moved()
  }
  link.onDrain(() => {
    if (waits === undefined) return fail('the link reported a drain, but send had not returned false')
    waits.resolve()
    waits = undefined
  })
  link.onFrame((frame) => {
    // The first frame of the worker only says that it has started.
    if (frame.byteLength === 0) return
    const wrong = wrongWith(frame, answered, sent[answered])
    answered++
    if (wrong === undefined) moved()
    else fail(wrong)
  })
  void link.closed.then(({ code, signal, reason }) =>
    fail(`the link closed: ${reason ?? signal ?? `exit code ${code}`}`),
  )

  const send = (bytes: number, stallMs: number, answerBytes: number) => {
    const frame = makeFrame(sent.length, bytes, stallMs, answerBytes)
    sent.push({ bytes: frame.byteLength, crc: crc32(frame), answerBytes })
    if (!link.send(frame)) waits ??= Promise.withResolvers()
  }
  for (const [index, { bytes, urgent, stallMs, answerBytes }] of steps.entries()) {
    send(bytes, stallMs, answerBytes)
    // While it waits: sometimes before anything has drained, sometimes after a part has.
    for (const size of urgent) {
      if (waits === undefined) break
      send(size, 0, 0)
      await tick(size % 5)
    }
    if (waits !== undefined)
      await within(waits.promise, () => `no drain was reported after frame ${index} (${urgent.length} urgent frames)`)
    if (problem) throw problem
  }
  while (answered < sent.length) {
    const next = new Promise<void>((resolve) => (moved = resolve))
    await within(next, () => `${answered} of ${sent.length} frames were answered`)
    if (problem) throw problem
  }
}

/** A frame that makes the other end stop reading for a while. */
export const stallFrame = (ms: number): Buffer => makeFrame(0, 0, ms, 0)

/** The answer of the other end to a frame, and how long it stalls after that. */
export function answerTo(frame: Buffer): { answer: Buffer; stallMs: number } {
  const answer = Buffer.alloc(HEADER_BYTES + frame.readUInt32LE(8), frame[0])
  answer.writeUInt32BE(frame.readUInt32BE(0), 0)
  answer.writeUInt32LE(frame.byteLength, 4)
  answer.writeUInt32LE(crc32(frame), 8)
  return { answer, stallMs: frame.readUInt32LE(4) }
}

/** Steps of random sizes, from a few bytes to some megabytes. */
export function randomSteps(random: () => number, count: number): LinkStep[] {
  const size = (most: number) => Math.floor(most ** random())
  return Array.from({ length: count }, () => ({
    // Some of any size, and many that fill a window piece by piece, like fragments of large messages.
    bytes: random() < 0.2 ? size(2 ** 21) : Math.floor(2 ** 17 * random()),
    urgent: random() < 0.5 ? [] : Array.from({ length: Math.ceil(6 * random()) }, () => size(2 ** 12)),
    stallMs: random() < 0.1 ? Math.floor(20 * random()) : 0,
    answerBytes: size(2 ** 18),
  }))
}

function makeFrame(number: number, bytes: number, stallMs: number, answerBytes: number): Buffer {
  const frame = Buffer.alloc(HEADER_BYTES + bytes, number % 251)
  // The first byte must not mark a frame of the side wire.
  frame.writeUInt32BE(number, 0)
  frame.writeUInt32LE(stallMs, 4)
  frame.writeUInt32LE(answerBytes, 8)
  return frame
}

function wrongWith(
  frame: Uint8Array,
  number: number,
  sent: { bytes: number; crc: number; answerBytes: number } | undefined,
): string | undefined {
  const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength)
  if (sent === undefined) return `received an answer to frame ${number}, which was not sent`
  const expected = HEADER_BYTES + sent.answerBytes
  if (bytes.byteLength !== expected) return `answer ${number} has ${bytes.byteLength} bytes instead of ${expected}`
  if (bytes.readUInt32BE(0) !== number) return `answer ${bytes.readUInt32BE(0)} arrived instead of ${number}`
  if (bytes.readUInt32LE(4) !== sent.bytes || bytes.readUInt32LE(8) !== sent.crc)
    return `frame ${number} of ${sent.bytes} bytes arrived with ${bytes.readUInt32LE(4)} bytes or with other content`
  return undefined
}

const tick = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function within(promise: Promise<void>, what: () => string): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const stuck = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what()}; nothing happened for ${STUCK_MS / 1000} s`)), STUCK_MS)
  })
  try {
    await Promise.race([promise, stuck])
  } finally {
    clearTimeout(timer)
  }
}
