import type { Socket } from 'node:net'
import type { Wire } from '../protocol/channel.ts'

/** Frames on a byte stream: a length in four bytes, little endian, and then that many bytes. */
const HEADER_BYTES = 4
/** Larger frames are invalid: larger messages are sent in fragments. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024

/**
 * Writes one frame. False: the stream's buffer is full; wait for `drain` before you send more.
 *
 * @example
 * send: (frame) => writeFrame(socket, frame)
 */
export function writeFrame(socket: Socket, frame: Uint8Array): boolean {
  const header = Buffer.allocUnsafe(HEADER_BYTES)
  header.writeUInt32LE(frame.byteLength, 0)
  socket.cork()
  socket.write(header)
  const room = socket.write(frame)
  socket.uncork()
  return room
}

/**
 * Cuts a byte stream into frames. Returns a listener for `data`; `bad` is called if a frame claims more than 64 MB.
 *
 * @example
 * socket.on('data', frameReader(onFrame, (reason) => socket.destroy(new Error(reason))))
 */
export function frameReader(onFrame: (frame: Buffer) => void, bad: (reason: string) => void): (chunk: Buffer) => void {
  let head: Buffer | undefined
  let frame: Buffer | undefined
  let have = 0
  return (incoming) => {
    let chunk = incoming
    if (head !== undefined) {
      chunk = Buffer.concat([head, chunk])
      head = undefined
    }
    let at = 0
    while (at < chunk.length) {
      if (frame !== undefined) {
        const take = Math.min(frame.length - have, chunk.length - at)
        chunk.copy(frame, have, at, at + take)
        have += take
        at += take
        if (have < frame.length) return
        const whole = frame
        frame = undefined
        onFrame(whole)
        continue
      }
      if (chunk.length - at < HEADER_BYTES) {
        head = chunk.subarray(at)
        return
      }
      const length = chunk.readUInt32LE(at)
      if (length > MAX_FRAME_BYTES) return bad(`a frame of ${length} bytes`)
      at += HEADER_BYTES
      if (chunk.length - at >= length) {
        onFrame(chunk.subarray(at, at + length))
        at += length
      } else {
        frame = Buffer.allocUnsafe(length)
        have = 0
      }
    }
  }
}

/** Sends and receives frames on a socket. */
export function framedWire(socket: Socket): Wire {
  return {
    send: (frame) => writeFrame(socket, frame),
    holdsBytes: () => socket.writableLength > 0,
    onDrain: (listener) => void socket.on('drain', listener),
    onFrame: (listener) =>
      void socket.on(
        'data',
        frameReader(listener, (reason) => socket.destroy(new Error(reason))),
      ),
  }
}
