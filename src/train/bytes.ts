import { endianness } from 'node:os'

const SWAPPED = endianness() === 'BE'

/** Writes little-endian bytes; arrays are aligned to 8 bytes. */
export class ByteWriter {
  #bytes = new Uint8Array(1024)
  #view = new DataView(this.#bytes.buffer)
  #length = 0

  u32(value: number): void {
    this.#room(4)
    this.#view.setUint32(this.#length, value, true)
    this.#length += 4
  }

  f64(value: number): void {
    this.#room(8)
    this.#view.setFloat64(this.#length, value, true)
    this.#length += 8
  }

  text(value: string): void {
    this.bytes(new TextEncoder().encode(value))
  }

  bytes(value: Uint8Array): void {
    this.u32(value.length)
    this.#put(value)
  }

  /** An array of numbers; zeros are left out if that is shorter. */
  vector(values: Float64Array): void {
    let count = 0
    // By index, because iterators of typed arrays are ten times slower.
    for (let i = 0; i < values.length; i++) if (values[i] !== 0) count++
    const isSparse = count * 12 < values.length * 8
    this.u32(values.length)
    this.u32(isSparse ? count : values.length)
    if (!isSparse) return this.#array(values, 8)
    const places = new Uint32Array(count)
    const others = new Float64Array(count)
    let at = 0
    for (let i = 0; i < values.length; i++)
      if (values[i] !== 0) {
        places[at] = i
        others[at++] = values[i]!
      }
    this.#array(places, 4)
    this.#array(others, 8)
  }

  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length)
  }

  #array(values: Float64Array | Uint32Array, size: number): void {
    this.#room(8)
    this.#length = Math.ceil(this.#length / 8) * 8
    const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength)
    this.#put(SWAPPED ? swapped(bytes, size) : bytes)
  }

  #put(bytes: Uint8Array): void {
    this.#room(bytes.length)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
  }

  #room(more: number): void {
    if (this.#length + more <= this.#bytes.length) return
    const bytes = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + more))
    bytes.set(this.#bytes)
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer)
  }
}

/** Reads what `ByteWriter` wrote. Throws a RangeError if the bytes are malformed. */
export class ByteReader {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  u32(): number {
    return this.#view.getUint32(this.#skip(4), true)
  }

  f64(): number {
    return this.#view.getFloat64(this.#skip(8), true)
  }

  text(): string {
    // Copied, because TextDecoder does not accept the shared memory that blobs may be in.
    return new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(this.bytes()))
  }

  bytes(): Uint8Array {
    const length = this.u32()
    const at = this.#skip(length)
    return this.#bytes.subarray(at, at + length)
  }

  /** Reads exactly `length` numbers, all of which must be finite. */
  vector(length: number): Float64Array<ArrayBuffer> {
    const [stored, count] = [this.u32(), this.u32()]
    if (stored !== length || count > length) throw new RangeError(`expected ${length} numbers, found ${stored}`)
    if (count === length) return finite(this.#array(Float64Array, count))
    const places = this.#array(Uint32Array, count)
    const others = finite(this.#array(Float64Array, count))
    const values = new Float64Array(length)
    let last = -1
    for (const [i, place] of places.entries()) {
      if (place <= last || place >= length)
        throw new RangeError(`invalid index ${place} after ${last} in ${length} numbers`)
      values[(last = place)] = others[i]!
    }
    return values
  }

  end(): void {
    if (this.#at !== this.#bytes.length)
      throw new RangeError(`${this.#bytes.length - this.#at} unexpected bytes at the end`)
  }

  #array<T extends Float64Array | Uint32Array>(
    kind: { new (buffer: ArrayBuffer): T; BYTES_PER_ELEMENT: number },
    count: number,
  ): T {
    this.#at = Math.ceil(this.#at / 8) * 8
    const at = this.#skip(count * kind.BYTES_PER_ELEMENT)
    // Copied, for alignment; not with `slice`, which on a Buffer does not copy.
    const bytes = new Uint8Array(this.#bytes.subarray(at, this.#at))
    return new kind((SWAPPED ? swapped(bytes, kind.BYTES_PER_ELEMENT) : bytes).buffer as ArrayBuffer)
  }

  #skip(bytes: number): number {
    const at = this.#at
    if (at + bytes > this.#bytes.length)
      throw new RangeError(`unexpected end of data after ${this.#bytes.length} bytes`)
    this.#at += bytes
    return at
  }
}

function finite<T extends Float64Array>(values: T): T {
  const at = values.findIndex((value) => !Number.isFinite(value))
  if (at !== -1) throw new RangeError(`number ${at} is ${values[at]}, not finite`)
  return values
}

function swapped(bytes: Uint8Array, size: number): Uint8Array {
  const copy = Buffer.from(bytes)
  return size === 8 ? new Uint8Array(copy.swap64()) : new Uint8Array(copy.swap32())
}
