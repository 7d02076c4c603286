import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'

/** The other side of src/train/tinker/wire.ts, written on its own: what the server reads, and what it answers. */

export interface WireDatum {
  readonly tokens: readonly number[]
  readonly inputs: Readonly<Record<string, readonly number[]>>
}

export interface WireRequest {
  modelId: string
  seqId: number
  data: WireDatum[]
  lossFn: string
  config: Record<string, number>
  configV2: Record<string, number>
  forwardOnly: boolean
}

type Fields = Readonly<Record<number, (reader: BinaryReader) => unknown>>

function read(bytes: Uint8Array, fields: Fields): void {
  const reader = new BinaryReader(bytes)
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag()
    const take = fields[field]
    if (take) take(reader)
    else throw new Error(`a field ${field} that is not known`)
    if (wire === WireType.StartGroup) throw new Error('a group')
  }
}

const view = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const int32s = (bytes: Uint8Array) =>
  Array.from({ length: bytes.length / 4 }, (_, i) => view(bytes).getInt32(4 * i, true))

export function readRequest(bytes: Uint8Array): WireRequest {
  const request: WireRequest = {
    ...{ modelId: '', seqId: 0, data: [], lossFn: '', config: {}, configV2: {}, forwardOnly: false },
  }
  const entry = (reader: BinaryReader, into: Record<string, number>, value: (reader: BinaryReader) => number) => {
    let [key, found] = ['', 0]
    read(reader.bytes(), { 1: (one) => (key = one.string()), 2: (one) => (found = value(one)) })
    // A key may be called `__proto__`.
    Object.defineProperty(into, key, { value: found, enumerable: true, configurable: true, writable: true })
  }
  read(bytes, {
    1: (reader) => (request.modelId = reader.string()),
    2: (reader) => (request.seqId = reader.int32()),
    3: (reader) => request.data.push(readDatum(reader.bytes())),
    4: (reader) => (request.lossFn = reader.string()),
    5: (reader) => entry(reader, request.config, (one) => one.double()),
    6: (reader) => (request.forwardOnly = reader.bool()),
    7: (reader) =>
      entry(reader, request.configV2, (one) => {
        let number = 0
        read(one.bytes(), { 1: (inside) => (number = inside.double()) })
        return number
      }),
  })
  return request
}

function readDatum(bytes: Uint8Array): WireDatum {
  const tokens: number[] = []
  const inputs: Record<string, readonly number[]> = {}
  read(bytes, {
    1: (chunk) =>
      read(chunk.bytes(), { 1: (text) => read(text.bytes(), { 1: (one) => tokens.push(...int32s(one.bytes())) }) }),
    2: (reader) => {
      let [key, values]: [string, readonly number[]] = ['', []]
      read(reader.bytes(), { 1: (one) => (key = one.string()), 2: (one) => (values = readTensor(one.bytes())) })
      inputs[key] = values
    },
  })
  return { tokens, inputs }
}

const FLOAT32 = 1
const INT64 = 2

function readTensor(bytes: Uint8Array): number[] {
  let [dense, dtype, size] = [new Uint8Array(), 0, 0]
  read(bytes, {
    1: (reader) => (dense = new Uint8Array(reader.bytes())),
    3: (reader) => (dtype = reader.int32()),
    4: (reader) => read4(reader.bytes(), (value) => (size = value)),
  })
  if (dtype !== FLOAT32 && dtype !== INT64) throw new Error(`a dtype ${dtype}`)
  const wide = dtype === FLOAT32 ? 4 : 8
  if (dense.length / wide !== size) throw new Error(`${dense.length / wide} numbers in a tensor of ${size}`)
  return Array.from({ length: size }, (_, i) =>
    dtype === FLOAT32 ? view(dense).getFloat32(4 * i, true) : Number(view(dense).getBigInt64(8 * i, true)),
  )
}

function read4(bytes: Uint8Array, value: (size: number) => void): void {
  const reader = new BinaryReader(bytes)
  while (reader.pos < reader.len) value(Number(reader.int64()))
}

const message = (write: (out: BinaryWriter) => unknown) => {
  const writer = new BinaryWriter()
  write(writer)
  return writer.finish()
}
const put = (out: BinaryWriter, field: number, bytes: Uint8Array) =>
  out.tag(field, WireType.LengthDelimited).bytes(bytes)
const floats = (values: readonly number[]) => new Uint8Array(Float32Array.from(values).buffer)

/** Log-probabilities of each datum; null: the service keeps them to itself. */
export const writeOutput = (logProbs: readonly (readonly number[])[] | null, loss: number, datums: number) =>
  message((out) => {
    out.tag(1, WireType.LengthDelimited).string('tinker:ArrayRecord')
    const record = message((inside) => {
      inside.tag(1, WireType.LengthDelimited).string('ArrayRecord')
      if (logProbs !== null) {
        const field = message((one) => {
          one.tag(1, WireType.LengthDelimited).string('logprobs')
          put(one, 2, batched(logProbs))
        })
        put(inside, 2, field)
      }
      inside.tag(3, WireType.Varint).int64(datums)
    })
    put(out, 2, record)
    const metric = message((one) => {
      one.tag(1, WireType.LengthDelimited).string('loss:sum')
      one.tag(2, WireType.Bit64).double(loss)
    })
    put(out, 3, metric)
  })

function batched(values: readonly (readonly number[])[]): Uint8Array {
  const offsets = new BigInt64Array(values.length + 1)
  for (const [i, one] of values.entries()) offsets[i + 1] = offsets[i]! + BigInt(4 * one.length)
  return message((out) => {
    put(out, 1, floats(values.flat()))
    put(out, 2, new Uint8Array(offsets.buffer))
    out.tag(3, WireType.Varint).int32(FLOAT32)
  })
}

export interface WireSample {
  readonly ids: readonly number[]
  readonly logProbs: readonly number[]
  readonly isCut: boolean
}

export const writeSamples = (samples: readonly WireSample[], promptLogProbs: readonly number[] | null) =>
  message((out) => {
    for (const { ids, logProbs, isCut } of samples) {
      const sequence = message((inside) => {
        inside.tag(1, WireType.Varint).int32(isCut ? 1 : 0)
        put(inside, 2, new Uint8Array(Int32Array.from(ids).buffer))
        put(inside, 3, floats(logProbs))
      })
      put(out, 1, sequence)
    }
    if (promptLogProbs !== null) put(out, 2, floats(promptLogProbs))
  })
