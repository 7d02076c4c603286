import { createServer, connect as netConnect, type Socket } from 'node:net'

/** Who sent a frame. */
export type From = 'caller' | 'called'

export interface Frame {
  readonly from: From
  readonly binary: boolean
  readonly payload: Buffer
}

/**
 * What the relay does with one frame: the payloads that it sends on in its place. Frames of each end are numbered: a caller's
 * first is its hello; the first of the called is its challenge, the second its welcome.
 */
export type Meddle = (frame: Frame, number: number) => readonly Buffer[]

/** A program without the token that listens where the other end calls, forwards everything, and may meddle with it. `to`: a port, or one for each connection. */
export async function startRelay(
  to: number | ((connection: number) => number),
  meddle: Meddle = ({ payload }) => [payload],
) {
  const seen: Record<From, Buffer[]> = { caller: [], called: [] }
  const frames: Frame[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer((near) => {
    const far = netConnect(typeof to === 'number' ? to : to(connections++), '127.0.0.1')
    const readers = { caller: new FrameReader(), called: new FrameReader() }
    const numbers = { caller: 0, called: 0 }
    for (const [from, source, target] of [
      ['caller', near, far],
      ['called', far, near],
    ] as const) {
      sockets.add(source)
      source.on('error', () => {})
      source.on('close', () => target.destroy())
      source.on('data', (data: Buffer) => {
        seen[from].push(data)
        for (const part of readers[from].add(data)) {
          if (part.frame === undefined) {
            target.write(part.bytes)
            continue
          }
          const { binary, payload } = part.frame
          const frame = { from, binary, payload }
          frames.push(frame)
          for (const one of meddle(frame, numbers[from]++)) target.write(frameOf(one, binary, from === 'caller'))
        }
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    port,
    address: `127.0.0.1:${port}`,
    frames,
    /** All bytes that have passed. */
    bytes: () => Buffer.concat([...seen.caller, ...seen.called]),
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

/** Cuts a direction of a connection into its HTTP header, data frames, and other frames. */
class FrameReader {
  #rest = Buffer.alloc(0)
  #upgraded = false

  add(data: Buffer): { bytes: Buffer; frame?: { binary: boolean; payload: Buffer } }[] {
    this.#rest = Buffer.concat([this.#rest, data])
    const parts: { bytes: Buffer; frame?: { binary: boolean; payload: Buffer } }[] = []
    if (!this.#upgraded) {
      const end = this.#rest.indexOf('\r\n\r\n')
      if (end < 0) return parts
      this.#upgraded = true
      parts.push({ bytes: this.#take(end + 4) })
    }
    for (let size = this.#frameSize(); size !== undefined && size <= this.#rest.byteLength; size = this.#frameSize()) {
      const bytes = this.#take(size)
      const opcode = bytes[0]! & 15
      if (opcode !== 1 && opcode !== 2) parts.push({ bytes })
      else parts.push({ bytes, frame: { binary: opcode === 2, payload: payloadOf(bytes) } })
    }
    return parts
  }

  #take(size: number): Buffer {
    const taken = this.#rest.subarray(0, size)
    this.#rest = this.#rest.subarray(size)
    return taken
  }

  #frameSize(): number | undefined {
    if (this.#rest.byteLength < 2) return undefined
    const header = headerSize(this.#rest)
    return this.#rest.byteLength < header ? undefined : header + payloadSize(this.#rest)
  }
}

const lengthBytes = (bytes: Buffer) => ({ 126: 2, 127: 8 })[bytes[1]! & 127] ?? 0
const headerSize = (bytes: Buffer) => 2 + lengthBytes(bytes) + (bytes[1]! & 128 ? 4 : 0)

function payloadSize(bytes: Buffer): number {
  const short = bytes[1]! & 127
  return short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short
}

/** Unmasked. */
function payloadOf(bytes: Buffer): Buffer {
  const header = headerSize(bytes)
  const payload = Buffer.from(bytes.subarray(header))
  if (bytes[1]! & 128) for (let i = 0; i < payload.byteLength; i++) payload[i]! ^= bytes[header - 4 + (i & 3)]!
  return payload
}

function frameOf(payload: Buffer, binary: boolean, masked: boolean): Buffer {
  const header = Buffer.alloc(10)
  header[0] = 0x80 | (binary ? 2 : 1)
  header[1] = 127 | (masked ? 128 : 0)
  header.writeBigUInt64BE(BigInt(payload.byteLength), 2)
  return Buffer.concat([header, Buffer.alloc(masked ? 4 : 0), payload])
}
