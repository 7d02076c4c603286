import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeOutput, decodeSamples, encodeRequest, sizeOf } from '../../dist/train/tinker/wire.js'
import { readRequest, writeOutput, writeSamples } from './tinker-wire.ts'

const floats = fc.array(fc.float({ noNaN: true }), { maxLength: 9 })
const ids = fc.array(fc.nat(200_000), { maxLength: 9 })
const datum = fc.record({ tokens: ids, target_tokens: ids, weights: floats })

describe('messages of Tinker', () => {
  it('have all of a request', () => {
    const config = fc.dictionary(fc.string({ minLength: 1 }), fc.double({ noNaN: true }), { maxKeys: 3 })
    const request = fc.record({
      ...{ modelId: fc.string(), seqId: fc.nat(), lossFn: fc.string(), forwardOnly: fc.boolean(), config },
      data: fc.array(datum, { maxLength: 4 }),
    })
    fc.assert(
      fc.property(request, ({ data, ...rest }) => {
        const sent = data.map(({ tokens, target_tokens, weights }) => ({
          tokens: Int32Array.from(tokens),
          inputs: { target_tokens: Int32Array.from(target_tokens), weights: Float32Array.from(weights) },
        }))
        const bytes = encodeRequest({ ...rest, data: sent })
        const read = readRequest(bytes)
        const wanted = data.map(({ tokens, ...inputs }) => ({ tokens, inputs }))
        expect(read).toEqual({ ...rest, configV2: rest.config, data: wanted })
        expect(sent.reduce((sum, one) => sum + sizeOf(one), 0)).toBeLessThanOrEqual(bytes.length)
      }),
    )
  })

  it('have all of a result, in one part or in several', () => {
    fc.assert(
      fc.property(
        fc.array(floats, { minLength: 1, maxLength: 4 }),
        fc.array(floats),
        fc.double({ noNaN: true }),
        (one, other, loss) => {
          const whole = Buffer.concat([writeOutput(one, 0, one.length), writeOutput(other, loss, other.length)])
          const { outputs, metrics } = decodeOutput(whole)
          expect(outputs.logprobs!.map((values) => Array.from(values))).toEqual([...one, ...other])
          expect(metrics).toEqual({ 'loss:sum': loss })
        },
      ),
    )
  })

  it('have all of a sample', () => {
    const sample = { ids: [3, 1, 4], logProbs: [-0.5, -0.25, -2], isCut: false }
    const { sequences, promptLogProbs } = decodeSamples(writeSamples([sample, { ...sample, isCut: true }], [-1, -4]))
    const read = { ids: Int32Array.from(sample.ids), logProbs: Float64Array.from(sample.logProbs) }
    expect(sequences).toEqual([
      { ...read, stop: 'stop' },
      { ...read, stop: 'length' },
    ])
    expect(promptLogProbs).toEqual(Float64Array.of(-1, -4))
    expect(decodeSamples(writeSamples([], null))).toEqual({ sequences: [] })
  })

  it('may have bfloat16, and fields that we do not know', () => {
    const part = (field: number, bytes: Uint8Array) => (out: BinaryWriter) =>
      out.tag(field, WireType.LengthDelimited).bytes(bytes)
    const message = (...parts: ((out: BinaryWriter) => unknown)[]) => {
      const out = new BinaryWriter()
      for (const one of parts) one(out)
      return out.finish()
    }
    const unknown = (out: BinaryWriter) => out.tag(99, WireType.LengthDelimited).string('of a newer version')
    // 1, -0.5: the upper halves of their float32.
    const data = new Uint8Array(Uint16Array.of(0x3f80, 0xbf00).buffer)
    const offsets = new Uint8Array(BigInt64Array.of(0n, 4n).buffer)
    const dtype = (out: BinaryWriter) => out.tag(3, WireType.Varint).int32(4)
    const batched = message(part(1, data), part(2, offsets), dtype, unknown)
    const field = message((out) => out.tag(1, WireType.LengthDelimited).string('logprobs'), part(2, batched))
    const bytes = message(unknown, part(2, message(part(2, field), unknown)))
    expect(decodeOutput(bytes)).toEqual({ outputs: { logprobs: [Float64Array.of(1, -0.5)] }, metrics: {} })
  })

  it('that are damaged throw, or say something else, and never hang', () => {
    const whole = writeOutput([[-1, -2, -3], [-4]], 2.5, 2)
    for (let length = 0; length < whole.length; length++)
      try {
        decodeOutput(whole.subarray(0, length))
      } catch (error) {
        expect(error).toBeInstanceOf(Error)
      }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          decodeOutput(bytes)
          decodeSamples(bytes)
        } catch (error) {
          expect(error).toBeInstanceOf(Error)
        }
      }),
    )
  })
})
