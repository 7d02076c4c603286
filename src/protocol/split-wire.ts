import type { Wire } from './channel.ts'
import { KIND } from './raw-frames.ts'

/**
 * A worker has two channels: one of its event loop, and one of a side thread, which works while a task blocks the loop. Both use
 * one link; the first byte marks frames of the side thread. The engine delivers marked frames on the side thread's own file
 * descriptor if the worker has one; otherwise to the event loop, which passes them on when it is free.
 */
export function splitWire(wire: Wire): { readonly main: Wire; readonly side: Wire } {
  let onMain = (_: Uint8Array) => {}
  let onSide = (_: Uint8Array) => {}
  const onDrain: (() => void)[] = []
  wire.onDrain(() => {
    for (const listener of onDrain) listener()
  })
  const main: Wire = {
    send: (frame) => wire.send(frame),
    onDrain: (listener) => void onDrain.push(listener),
    // From here on frames may come.
    onFrame(listener) {
      onMain = listener
      wire.onFrame((frame) => (isMarked(frame) ? onSide(frame.subarray(1)) : onMain(frame)))
    },
    ...(wire.holdsBytes && { holdsBytes: () => wire.holdsBytes!() }),
  }
  const side: Wire = {
    send: (frame) => wire.send(marked(frame)),
    onDrain: (listener) => void onDrain.push(listener),
    onFrame(listener) {
      onSide = listener
    },
  }
  return { main, side }
}

export function marked(frame: Uint8Array): Uint8Array {
  const whole = Buffer.allocUnsafe(frame.byteLength + 1)
  whole[0] = KIND.side
  whole.set(frame, 1)
  return whole
}

export const isMarked = (frame: Uint8Array): boolean => frame[0] === KIND.side
