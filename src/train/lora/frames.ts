/** Messages from python/lora_sidecar.py. */
export type FromSidecar =
  | { readonly ready: true; readonly protocol: number; readonly pid: number; readonly torch: string }
  /** Sent every second, also while the process loads or computes. */
  | { readonly heartbeat: true }
  | { readonly id: number; readonly ok: true; readonly result: unknown }
  | { readonly id: number; readonly ok: false; readonly error: { readonly type: string; readonly message: string } }

/** A larger header length means that the bytes are text, not a frame. */
const MAX_HEADER = 64 << 20
const SHOWN_CHARS = 200

/** A request, as buffers to write in order. */
export function requestFrame(
  id: number,
  op: string,
  args: unknown,
  parts: readonly Uint8Array[],
): readonly Uint8Array[] {
  const header = Buffer.from(JSON.stringify({ id, op, args, parts: parts.map((part) => part.byteLength) }))
  const size = Buffer.alloc(4)
  size.writeUInt32LE(header.length)
  return [size, header, ...parts]
}

/** Assembles frames from chunks of any size. `add` throws if the bytes are not frames. */
export class FrameReader {
  readonly #take: (header: FromSidecar, parts: Uint8Array[]) => void
  #chunks: Buffer[] = []
  #length = 0
  /** The number of bytes of the next part of a frame. */
  #wanted = 4
  #header: (FromSidecar & { readonly parts: readonly number[] }) | undefined
  #state: 'size' | 'header' | 'parts' = 'size'
  #parts: Uint8Array[] = []

  constructor(take: (header: FromSidecar, parts: Uint8Array[]) => void) {
    this.#take = take
  }

  readonly add = (chunk: Buffer): void => {
    this.#chunks.push(chunk)
    this.#length += chunk.length
    while (this.#length >= this.#wanted) this.#next(this.#cut(this.#wanted))
  }

  #next(bytes: Buffer): void {
    switch (this.#state) {
      case 'size':
        this.#wanted = bytes.readUInt32LE()
        if (this.#wanted > MAX_HEADER)
          throw new RangeError(
            `it starts with "${Buffer.concat([bytes, ...this.#chunks])
              .toString()
              .slice(0, SHOWN_CHARS)}"`,
          )
        this.#state = 'header'
        return
      case 'header':
        this.#header = JSON.parse(bytes.toString())
        this.#parts = []
        this.#state = 'parts'
        break
      case 'parts':
        // Copied, because a Float64Array needs an offset that is a multiple of 8.
        this.#parts.push(new Uint8Array(bytes))
    }
    const { parts } = this.#header!
    if (this.#parts.length < parts.length) {
      this.#wanted = parts[this.#parts.length]!
      return
    }
    this.#state = 'size'
    this.#wanted = 4
    this.#take(this.#header!, this.#parts)
  }

  /** Chunks are concatenated once per part, because a state may be hundreds of megabytes. */
  #cut(size: number): Buffer {
    const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
    this.#chunks = size === all.length ? [] : [all.subarray(size)]
    this.#length -= size
    return all.subarray(0, size)
  }
}
