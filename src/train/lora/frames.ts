/** What python/lora_sidecar.py answers. */
export type FromSidecar =
  | { readonly ready: true; readonly protocol: number; readonly pid: number; readonly torch: string }
  | { readonly id: number; readonly ok: true; readonly result: unknown }
  | { readonly id: number; readonly ok: false; readonly error: { readonly type: string; readonly message: string } }

/** What begins with a larger number is no frame, but text. */
const MAX_HEADER = 64 << 20
const SHOWN_CHARS = 200

/** A request, as buffers to write one after the other. */
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

/** Puts frames together from chunks of whatever size. `add` throws when they are no frames. */
export class FrameReader {
  readonly #take: (header: FromSidecar, parts: Uint8Array[]) => void
  #chunks: Buffer[] = []
  #length = 0
  /** How many bytes the next part of a frame has. */
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
            `it printed "${Buffer.concat([bytes, ...this.#chunks])
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
        // A copy of its own: Float64Array needs an offset that 8 divides.
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

  /** Chunks are joined once per piece: a state has hundreds of megabytes. */
  #cut(size: number): Buffer {
    const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
    this.#chunks = size === all.length ? [] : [all.subarray(size)]
    this.#length -= size
    return all.subarray(0, size)
  }
}
