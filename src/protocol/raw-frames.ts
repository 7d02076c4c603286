/**
 * The first byte of a frame is its kind, so that the receiver need not know which codec was agreed on. v8 writes this byte
 * itself. `codec.ts` has the batches, this file the kinds that carry no messages, and `split-wire.ts` the frames of the side
 * wire, which are other frames with one byte in front.
 */
export const KIND = { plain: 0x00, fragment: 0x01, credit: 0x02, portable: 0x03, side: 0x04, v8: 0xff } as const

/** [u8 kind][u32le stream][u8 last][bytes]: a piece of a batch that is too large for one frame. */
export interface Fragment {
  readonly stream: number
  readonly last: boolean
  readonly bytes: Uint8Array
}
const FRAGMENT_HEADER = 6

/** [u8 kind][u32le stream][f64le bytes]: this many more bytes of the stream may be sent. */
export interface Credit {
  readonly stream: number
  readonly bytes: number
}
const CREDIT_BYTES = 13

/** Streams are numbered in 32 bits and then from the start again; by then the first of them are long over. */
export const LAST_STREAM = 0xffffffff

export function fragmentFrame({ stream, last, bytes }: Fragment): Uint8Array {
  const frame = Buffer.allocUnsafe(FRAGMENT_HEADER + bytes.byteLength)
  frame[0] = KIND.fragment
  frame.writeUInt32LE(stream, 1)
  frame[5] = last ? 1 : 0
  frame.set(bytes, FRAGMENT_HEADER)
  return frame
}

/** Undefined if it is malformed. */
export function readFragment(frame: Uint8Array): Fragment | undefined {
  if (frame.byteLength < FRAGMENT_HEADER || frame[5]! > 1) return undefined
  return { stream: view(frame).getUint32(1, true), last: frame[5] === 1, bytes: frame.subarray(FRAGMENT_HEADER) }
}

export function creditFrame({ stream, bytes }: Credit): Uint8Array {
  const frame = Buffer.allocUnsafe(CREDIT_BYTES)
  frame[0] = KIND.credit
  frame.writeUInt32LE(stream, 1)
  frame.writeDoubleLE(bytes, 5)
  return frame
}

/** Undefined if it is malformed. */
export function readCredit(frame: Uint8Array): Credit | undefined {
  if (frame.byteLength !== CREDIT_BYTES) return undefined
  const bytes = view(frame).getFloat64(5, true)
  return Number.isFinite(bytes) && bytes >= 0 ? { stream: view(frame).getUint32(1, true), bytes } : undefined
}

const view = (frame: Uint8Array) => new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
