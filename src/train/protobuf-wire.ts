/**
 * The part of Protobuf's wire format that the messages of training use. A complete Protobuf package is installed only
 * with Spark.
 */

/** How the bytes of a field are laid out: the lowest three bits of its tag. */
export const WireType = { Varint: 0, Bit64: 1, LengthDelimited: 2, Bit32: 5 } as const
type WireType = (typeof WireType)[keyof typeof WireType]

const START_BYTES = 256
/** A varint has seven bits in each byte; 64 bits take ten. */
const VARINT_BYTES = 10

export class WireWriter {
  #buffer = new Uint8Array(START_BYTES)
  #view = new DataView(this.#buffer.buffer)
  #length = 0

  tag(field: number, type: WireType): this {
    return this.#varint(BigInt(field * 8 + type))
  }

  /** Writes the length, then the bytes. */
  bytes(value: Uint8Array): this {
    this.#varint(BigInt(value.byteLength))
    this.#reserve(value.byteLength)
    this.#buffer.set(value, this.#length)
    this.#length += value.byteLength
    return this
  }

  string(value: string): this {
    return this.bytes(Buffer.from(value, 'utf8'))
  }

  bool(value: boolean): this {
    return this.#varint(value ? 1n : 0n)
  }

  int32(value: number): this {
    return this.int64(value)
  }

  int64(value: number): this {
    return this.#varint(BigInt.asUintN(64, BigInt(value)))
  }

  float(value: number): this {
    this.#reserve(4)
    this.#view.setFloat32(this.#length, value, true)
    this.#length += 4
    return this
  }

  double(value: number): this {
    this.#reserve(8)
    this.#view.setFloat64(this.#length, value, true)
    this.#length += 8
    return this
  }

  finish(): Uint8Array<ArrayBuffer> {
    return this.#buffer.slice(0, this.#length)
  }

  #varint(value: bigint): this {
    this.#reserve(VARINT_BYTES)
    let rest = value
    for (; rest > 0x7fn; rest >>= 7n) this.#buffer[this.#length++] = Number(rest & 0x7fn) | 0x80
    this.#buffer[this.#length++] = Number(rest)
    return this
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return
    const larger = new Uint8Array(Math.max(2 * this.#buffer.length, this.#length + bytes))
    larger.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = larger
    this.#view = new DataView(larger.buffer)
  }
}

/** Throws a RangeError if the bytes are not a Protobuf message. */
export class WireReader {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  tag(): [field: number, type: number] {
    const tag = Number(this.#varint())
    const field = Math.floor(tag / 8)
    if (field < 1) throw new RangeError(`a Protobuf field with the number ${field}`)
    return [field, tag % 8]
  }

  bytes(): Uint8Array {
    const length = Number(this.#varint())
    const start = this.#take(length)
    return this.#bytes.subarray(start, start + length)
  }

  string(): string {
    return Buffer.from(this.bytes()).toString('utf8')
  }

  int32(): number {
    return Number(BigInt.asIntN(32, this.#varint()))
  }

  int64(): number {
    return Number(BigInt.asIntN(64, this.#varint()))
  }

  double(): number {
    return this.#view.getFloat64(this.#take(8), true)
  }

  skip(type: number): void {
    if (type === WireType.Varint) this.#varint()
    else if (type === WireType.Bit64) this.#take(8)
    else if (type === WireType.LengthDelimited) this.bytes()
    else if (type === WireType.Bit32) this.#take(4)
    else throw new RangeError(`a Protobuf field of the unknown wire type ${type}`)
  }

  #varint(): bigint {
    let value = 0n
    for (let index = 0; index < VARINT_BYTES; index++) {
      const byte = this.#bytes[this.#take(1)]!
      value |= BigInt(byte & 0x7f) << BigInt(7 * index)
      if (byte < 0x80) return value
    }
    throw new RangeError('a Protobuf number of more than 64 bits')
  }

  #take(bytes: number): number {
    const start = this.#at
    if (!(start + bytes <= this.#bytes.length)) throw new RangeError('a Protobuf message that ends too early')
    this.#at = start + bytes
    return start
  }
}
