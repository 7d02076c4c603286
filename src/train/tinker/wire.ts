import { endianness } from 'node:os'
import { WireReader, WireType, WireWriter } from '../protobuf-wire.ts'

/** The Protobuf messages of Tinker, by the field numbers in `tinker_public.proto` of its Python SDK. */

const REQUEST = { modelId: 1, seqId: 2, data: 3, lossFn: 4, config: 5, forwardOnly: 6, configV2: 7 } as const
const CONFIG_VALUE = { number: 1 } as const
const DATUM = { modelInput: 1, lossFnInputs: 2 } as const
const CHUNK = { encodedText: 1 } as const
const ENCODED_TEXT = { tokens: 1 } as const
const TENSOR = { dense: 1, dtype: 3, shape: 4 } as const
const ENTRY = { key: 1, value: 2 } as const
const OUTPUT = { outputs: 2, metrics: 3 } as const
const RECORD = { fields: 2 } as const
const BATCHED = { data: 1, offsets: 2, dtype: 3 } as const
const SAMPLE_RESPONSE = { sequences: 1, promptLogProbs: 2 } as const
const SEQUENCE = { stopReason: 1, tokens: 2, logProbs: 3 } as const
const DTYPE = { float32: 1, int64: 2, bfloat16: 4 } as const
const STOP_REASON_LENGTH = 1

/** A sequence and the inputs of its loss. Tinker accepts only float32; ids are sent as int64. */
export interface Datum {
  readonly tokens: Int32Array
  readonly inputs: Readonly<Record<string, Int32Array | Float32Array>>
}

export interface ForwardBackwardRequest {
  readonly modelId: string
  readonly seqId: number
  readonly data: readonly Datum[]
  readonly lossFn: string
  readonly config: Readonly<Record<string, number>>
  readonly forwardOnly: boolean
}

export interface ForwardBackwardOutput {
  /** By field name, one array per datum. */
  readonly outputs: Readonly<Record<string, readonly Float64Array[]>>
  readonly metrics: Readonly<Record<string, number>>
}

/** A completion of a prompt. */
export interface TinkerSample {
  readonly ids: Int32Array
  readonly logProbs: Float64Array
  readonly stop: 'stop' | 'length'
}

/** The approximate size of a datum in a request, because requests have a size limit. */
export const sizeOf = ({ tokens, inputs }: Datum): number =>
  Object.values(inputs).reduce(
    (sum, values) => sum + values.length * (values instanceof Float32Array ? 4 : 8),
    4 * tokens.length,
  )

export function encodeRequest(request: ForwardBackwardRequest): Uint8Array<ArrayBuffer> {
  const { modelId, seqId, data, lossFn, config, forwardOnly } = request
  return message((out) => {
    out.tag(REQUEST.modelId, WireType.LengthDelimited).string(modelId)
    out.tag(REQUEST.seqId, WireType.Varint).int32(seqId)
    for (const datum of data) put(out, REQUEST.data, encodeDatum(datum))
    out.tag(REQUEST.lossFn, WireType.LengthDelimited).string(lossFn)
    // Older servers read the first map, newer ones the second.
    for (const [key, value] of Object.entries(config)) {
      put(
        out,
        REQUEST.config,
        entry(key, (inside) => inside.tag(ENTRY.value, WireType.Bit64).double(value)),
      )
      const number = message((inside) => inside.tag(CONFIG_VALUE.number, WireType.Bit64).double(value))
      put(
        out,
        REQUEST.configV2,
        entry(key, (inside) => put(inside, ENTRY.value, number)),
      )
    }
    if (forwardOnly) out.tag(REQUEST.forwardOnly, WireType.Varint).bool(true)
  })
}

const encodeDatum = ({ tokens, inputs }: Datum) =>
  message((out) => {
    const text = message((inside) => put(inside, ENCODED_TEXT.tokens, littleEndian(tokens)))
    put(
      out,
      DATUM.modelInput,
      message((inside) => put(inside, CHUNK.encodedText, text)),
    )
    for (const [key, values] of Object.entries(inputs))
      put(
        out,
        DATUM.lossFnInputs,
        entry(key, (inside) => put(inside, ENTRY.value, encodeTensor(values))),
      )
  })

const encodeTensor = (values: Int32Array | Float32Array) =>
  message((out) => {
    const isFloat = values instanceof Float32Array
    put(out, TENSOR.dense, littleEndian(isFloat ? values : BigInt64Array.from(values, BigInt)))
    out.tag(TENSOR.dtype, WireType.Varint).int32(isFloat ? DTYPE.float32 : DTYPE.int64)
    put(
      out,
      TENSOR.shape,
      message((inside) => inside.int64(values.length)),
    )
  })

/** Throws a RangeError if the bytes are not such a message. */
export function decodeOutput(bytes: Uint8Array): ForwardBackwardOutput {
  const outputs: Record<string, Float64Array[]> = {}
  const metrics: Record<string, number> = {}
  eachField(bytes, {
    // Large answers come in several records.
    [OUTPUT.outputs]: (reader) =>
      eachField(reader.bytes(), {
        [RECORD.fields]: (inside) => {
          const [key, value] = readEntry(inside.bytes(), (one) => decodeBatched(one.bytes()))
          if (value) (outputs[key] ??= []).push(...value)
        },
      }),
    [OUTPUT.metrics]: (reader) => {
      const [key, value = 0] = readEntry(reader.bytes(), (one) => one.double())
      metrics[key] = value
    },
  })
  return { outputs, metrics }
}

/** The numbers of all data, concatenated, and the start of each. */
function decodeBatched(bytes: Uint8Array): Float64Array[] {
  let [data, offsets, dtype]: [Uint8Array, Uint8Array, number] = [new Uint8Array(), new Uint8Array(), 0]
  eachField(bytes, {
    [BATCHED.data]: (reader) => void (data = reader.bytes()),
    [BATCHED.offsets]: (reader) => void (offsets = reader.bytes()),
    [BATCHED.dtype]: (reader) => void (dtype = reader.int32()),
  })
  if (dtype !== DTYPE.float32 && dtype !== DTYPE.bfloat16) return []
  const starts = numbersIn(offsets, 8, (view, at) => Number(view.getBigInt64(at, true)))
  return Array.from({ length: Math.max(0, starts.length - 1) }, (_, i) => {
    const part = data.subarray(starts[i]!, starts[i + 1]!)
    return dtype === DTYPE.float32 ? floatsIn(part) : numbersIn(part, 2, bfloat16)
  })
}

/** bfloat16 is the upper half of a float32. */
function bfloat16(view: DataView, at: number): number {
  const whole = new DataView(new ArrayBuffer(4))
  whole.setUint16(2, view.getUint16(at, true), true)
  return whole.getFloat32(0, true)
}

export function decodeSamples(bytes: Uint8Array): { sequences: TinkerSample[]; promptLogProbs?: Float64Array } {
  const sequences: TinkerSample[] = []
  let promptLogProbs: Float64Array | undefined
  eachField(bytes, {
    [SAMPLE_RESPONSE.sequences]: (reader) => void sequences.push(decodeSequence(reader.bytes())),
    [SAMPLE_RESPONSE.promptLogProbs]: (reader) => void (promptLogProbs = floatsIn(reader.bytes())),
  })
  return { sequences, ...(promptLogProbs && { promptLogProbs }) }
}

function decodeSequence(bytes: Uint8Array): TinkerSample {
  let [reason, ids, logProbs] = [0, new Int32Array(), new Float64Array()]
  eachField(bytes, {
    [SEQUENCE.stopReason]: (reader) => void (reason = reader.int32()),
    [SEQUENCE.tokens]: (reader) =>
      void (ids = Int32Array.from(numbersIn(reader.bytes(), 4, (view, at) => view.getInt32(at, true)))),
    [SEQUENCE.logProbs]: (reader) => void (logProbs = floatsIn(reader.bytes())),
  })
  return { ids, logProbs, stop: reason === STOP_REASON_LENGTH ? 'length' : 'stop' }
}

const floatsIn = (bytes: Uint8Array) => numbersIn(bytes, 4, (view, at) => view.getFloat32(at, true))

function numbersIn(
  bytes: Uint8Array,
  size: number,
  read: (view: DataView, at: number) => number,
): Float64Array<ArrayBuffer> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const numbers = new Float64Array(Math.floor(bytes.length / size))
  for (let i = 0; i < numbers.length; i++) numbers[i] = read(view, i * size)
  return numbers
}

const message = (write: (out: WireWriter) => unknown): Uint8Array<ArrayBuffer> => {
  const writer = new WireWriter()
  write(writer)
  return writer.finish()
}

const put = (out: WireWriter, field: number, bytes: Uint8Array) => out.tag(field, WireType.LengthDelimited).bytes(bytes)

/** An entry of a map. */
const entry = (key: string, value: (out: WireWriter) => unknown) =>
  message((out) => {
    out.tag(ENTRY.key, WireType.LengthDelimited).string(key)
    value(out)
  })

function readEntry<T>(bytes: Uint8Array, read: (reader: WireReader) => T): [key: string, value: T | undefined] {
  let [key, value]: [string, T | undefined] = ['', undefined]
  eachField(bytes, {
    [ENTRY.key]: (reader) => void (key = reader.string()),
    [ENTRY.value]: (reader) => void (value = read(reader)),
  })
  return [key, value]
}

/** Unknown fields are skipped, because newer versions may add some. */
function eachField(bytes: Uint8Array, fields: Readonly<Record<number, (reader: WireReader) => void>>): void {
  const reader = new WireReader(bytes)
  while (!reader.atEnd) {
    const [field, wire] = reader.tag()
    const read = fields[field]
    if (read) read(reader)
    else reader.skip(wire)
  }
}

function littleEndian(values: Int32Array | Float32Array | BigInt64Array): Uint8Array {
  const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength)
  if (endianness() === 'LE') return bytes
  const copy = Buffer.from(bytes)
  return values.BYTES_PER_ELEMENT === 8 ? copy.swap64() : copy.swap32()
}
