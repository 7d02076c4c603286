import { ManyworldsError } from '../../errors.ts'
import { canonical } from '../../trajectory/canonical.ts'
import { ByteReader, ByteWriter } from '../bytes.ts'
import { readPacked } from '../read-packed.ts'
import { countWeights, type NeuralSettings, networkSizes } from './settings.ts'

/** "MWNW", as bytes. */
const MAGIC = 0x574e574d
const FORMAT = 1

const countAll = (settings: NeuralSettings): number =>
  networkSizes(settings).reduce((sum, sizes) => sum + countWeights(sizes), 0)

/**
 * The bytes of a version, little-endian: a header with the settings that determine the meaning of each weight, then the
 * weights as float64.
 */
export function packWeights(settings: NeuralSettings, weights: Float64Array): Uint8Array<ArrayBuffer> {
  const out = new ByteWriter()
  writeHeader(out, MAGIC, settings)
  out.vector(weights)
  return out.finish()
}

/** `name`: of the policy, for messages. Throws `POLICY_INVALID` if the bytes are not weights of such a policy. */
export function unpackWeights(bytes: Uint8Array, settings: NeuralSettings, name: string): Float64Array<ArrayBuffer> {
  return readPacked(bytes, `weights of policy '${name}'`, (reader) => {
    readHeader(reader, MAGIC, settings, name)
    return reader.vector(countAll(settings))
  })
}

/**
 * The settings in the header of weights; undefined if they are of another kind of policy. Throws if the bytes are too
 * short.
 */
export function settingsOf(bytes: Uint8Array): NeuralSettings | undefined {
  const reader = new ByteReader(bytes)
  if (reader.u32() !== MAGIC) return undefined
  reader.u32()
  return JSON.parse(reader.text()) as NeuralSettings
}

export function writeHeader(out: ByteWriter, magic: number, settings: NeuralSettings): void {
  out.u32(magic)
  out.u32(FORMAT)
  out.text(canonical(settings))
}

/** Checks that the stored settings match those of the policy. */
export function readHeader(reader: ByteReader, magic: number, settings: NeuralSettings, name: string): void {
  if (reader.u32() !== magic) throw new RangeError('the magic number does not match')
  const format = reader.u32()
  if (format !== FORMAT)
    throw new RangeError(`their format is ${format}, but this version of manyworlds reads format ${FORMAT}`)
  const text = reader.text()
  if (text === canonical(settings)) return
  const stored = JSON.parse(text) as Record<string, unknown>
  for (const [key, is] of Object.entries(settings))
    if (canonical(stored[key]) !== canonical(is))
      throw new ManyworldsError(
        'POLICY_INVALID',
        `the weights were made with ${key} ${shown(stored[key])}, but policy '${name}' has ${shown(is)}; open them with the policy that was trained`,
      )
  throw new RangeError('they have unknown settings')
}

const shown = (value: unknown): string => canonical(value).slice(0, 80)
