import { ManyworldsError } from '../../errors.ts'
import { ByteReader, ByteWriter } from '../bytes.ts'
import { readPacked } from '../read-packed.ts'
import { HASHING } from './hash.ts'
import type { SoftmaxSettings } from './settings.ts'

/** "MWSW", as bytes. */
const MAGIC = 0x5753574d
const FORMAT = 1

/** The number of weights of a policy: those of its features, then those of its value head. */
export const countWeights = ({ bits, hasValue }: SoftmaxSettings): number => 2 ** bits * (hasValue ? 2 : 1)

/**
 * The bytes of a version, little-endian: a header with the settings that determine the meaning of each weight, then the
 * weights as float64, without zeros if that is shorter.
 */
export function packWeights(settings: SoftmaxSettings, weights: Float64Array): Uint8Array<ArrayBuffer> {
  const out = new ByteWriter()
  writeHeader(out, MAGIC, settings)
  out.vector(weights)
  return out.finish()
}

/** `name`: of the policy, for messages. Throws `POLICY_INVALID` if the bytes are not weights of such a policy. */
export function unpackWeights(bytes: Uint8Array, settings: SoftmaxSettings, name: string): Float64Array<ArrayBuffer> {
  return readPacked(bytes, `weights of policy '${name}'`, (reader) => {
    readHeader(reader, MAGIC, settings, name)
    return reader.vector(countWeights(settings))
  })
}

/**
 * The settings in the header of weights; undefined if they are of another kind of policy. Throws a RangeError if the
 * bytes are too short.
 */
export function settingsOf(bytes: Uint8Array): SoftmaxSettings | undefined {
  const reader = new ByteReader(bytes)
  if (reader.u32() !== MAGIC) return undefined
  const [, , bits, value] = [reader.u32(), reader.u32(), reader.u32(), reader.u32()]
  return { bits, hasValue: value === 1, temperature: reader.f64(), features: reader.text() }
}

export function writeHeader(out: ByteWriter, magic: number, settings: SoftmaxSettings): void {
  for (const value of [magic, FORMAT, HASHING, settings.bits, settings.hasValue ? 1 : 0]) out.u32(value)
  out.f64(settings.temperature)
  out.text(settings.features)
}

/** Checks that the stored settings match those of the policy. */
export function readHeader(reader: ByteReader, magic: number, settings: SoftmaxSettings, name: string): void {
  if (reader.u32() !== magic) throw new RangeError('the magic number does not match')
  const stored: Record<string, unknown> = { format: reader.u32(), hashing: reader.u32(), bits: reader.u32() }
  Object.assign(stored, { value: reader.u32() === 1, temperature: reader.f64(), features: reader.text() })
  const { bits, hasValue: value, temperature, features } = settings
  const own: Record<string, unknown> = { format: FORMAT, hashing: HASHING, bits, value, temperature, features }
  for (const [key, is] of Object.entries(own))
    if (stored[key] !== is)
      throw new ManyworldsError(
        'POLICY_INVALID',
        `the weights were made with ${key} ${String(stored[key])}, but policy '${name}' has ${String(is)}; open them with the policy that was trained`,
      )
}
