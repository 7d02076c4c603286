import { WireReader, WireType, WireWriter } from '../protobuf-wire.ts'

/**
 * The fields of TensorFlow's `Event` that scalars and texts need, by their numbers in event.proto, summary.proto and
 * tensor.proto. Written by hand, because generated code would be a thousand times as long.
 */

const EVENT = { wallTime: 1, step: 2, fileVersion: 3, summary: 5 } as const
const SUMMARY = { value: 1 } as const
const VALUE = { tag: 1, simpleValue: 2, tensor: 8, metadata: 9 } as const
const METADATA = { pluginData: 1 } as const
const PLUGIN_DATA = { pluginName: 1 } as const
const TENSOR = { dtype: 1, stringVal: 8 } as const
const DT_STRING = 7

const fields = (write: (writer: WireWriter) => void): Uint8Array<ArrayBuffer> => {
  const writer = new WireWriter()
  write(writer)
  return writer.finish()
}
const bytes = (writer: WireWriter, field: number, value: Uint8Array) =>
  writer.tag(field, WireType.LengthDelimited).bytes(value)
/** Unpaired surrogates become U+FFFD, because Protobuf strings are UTF-8. */
const text = (writer: WireWriter, field: number, value: string) => bytes(writer, field, Buffer.from(value, 'utf8'))

const event = (at: number, rest: (writer: WireWriter) => void) =>
  fields((writer) => {
    writer.tag(EVENT.wallTime, WireType.Bit64).double(at / 1000)
    rest(writer)
  })

const summary = (step: number, at: number, values: readonly Uint8Array[]) =>
  event(at, (writer) => {
    writer.tag(EVENT.step, WireType.Varint).int64(step)
    bytes(
      writer,
      EVENT.summary,
      fields((inside) => {
        for (const value of values) bytes(inside, SUMMARY.value, value)
      }),
    )
  })

/** The first event of each file. */
export const versionEvent = (at: number): Uint8Array =>
  event(at, (writer) => text(writer, EVENT.fileVersion, 'brain.Event:2'))

/** All values of a step are one event, so that a crash leaves all or none of them. */
export function scalarsEvent(step: number, values: readonly (readonly [string, number])[], at: number): Uint8Array {
  const encoded = values.map(([tag, value]) =>
    fields((writer) => {
      text(writer, VALUE.tag, tag)
      writer.tag(VALUE.simpleValue, WireType.Bit32).float(Math.fround(value))
    }),
  )
  return summary(step, at, encoded)
}

export function textEvent(step: number, tag: string, words: string, at: number): Uint8Array {
  const plugin = fields((writer) => text(writer, PLUGIN_DATA.pluginName, 'text'))
  const tensor = fields((writer) => {
    writer.tag(TENSOR.dtype, WireType.Varint).int32(DT_STRING)
    text(writer, TENSOR.stringVal, words)
  })
  const value = fields((writer) => {
    text(writer, VALUE.tag, tag)
    bytes(writer, VALUE.tensor, tensor)
    bytes(
      writer,
      VALUE.metadata,
      fields((inside) => bytes(inside, METADATA.pluginData, plugin)),
    )
  })
  return summary(step, at, [value])
}

/** The step of an event, and the tags of its values. */
export function readEvent(event: Uint8Array): { step: number; tags: string[] } {
  let step = 0
  const tags: string[] = []
  eachField(event, (reader, field) => {
    if (field === EVENT.step) step = reader.int64()
    else if (field === EVENT.summary)
      eachField(reader.bytes(), (inside, summaryField) => {
        if (summaryField !== SUMMARY.value) return false
        eachField(inside.bytes(), (value, valueField) => {
          if (valueField !== VALUE.tag) return false
          tags.push(Buffer.from(value.bytes()).toString('utf8'))
          return true
        })
        return true
      })
    else return false
    return true
  })
  return { step, tags }
}

/** `read` returns false for fields to skip. */
function eachField(message: Uint8Array, read: (reader: WireReader, field: number) => boolean): void {
  const reader = new WireReader(message)
  while (!reader.atEnd) {
    const [field, type] = reader.tag()
    if (!read(reader, field)) reader.skip(type)
  }
}
