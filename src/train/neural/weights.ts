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

/** The bytes of a version: little endian, a header with all that decides which weight is whose, then the weights as float64. */
export function packWeights(settings: NeuralSettings, weights: Float64Array): Uint8Array<ArrayBuffer> {
  const out = new ByteWriter()
  writeHeader(out, MAGIC, settings)
  out.vector(weights)
  return out.finish()
}

/** `name`: of the policy, for messages. Throws `POLICY_INVALID` where the bytes are not weights of such a policy. */
export function unpackWeights(bytes: Uint8Array, settings: NeuralSettings, name: string): Float64Array<ArrayBuffer> {
  return readPacked(bytes, `weights of policy '${name}'`, (reader) => {
    readHeader(reader, MAGIC, settings, name)
    return reader.vector(countAll(settings))
  })
}

/** What is said at the beginning of weights, as JSON; undefined: they are of another kind of policy. Throws if they end too early. */
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

/** What is stored with weights, and must be what the policy has. */
export function readHeader(reader: ByteReader, magic: number, settings: NeuralSettings, name: string): void {
  if (reader.u32() !== magic) throw new RangeError('they begin with other bytes')
  const format = reader.u32()
  if (format !== FORMAT)
    throw new RangeError(`they have format ${format}, and this version of manyworlds reads ${FORMAT}`)
  const text = reader.text()
  if (text === canonical(settings)) return
  const said = JSON.parse(text) as Record<string, unknown>
  for (const [key, is] of Object.entries(settings))
    if (canonical(said[key]) !== canonical(is))
      throw new ManyworldsError(
        'POLICY_INVALID',
        `the weights were made with ${key} ${shown(said[key])}, and policy '${name}' has ${shown(is)}; open them with the policy that was trained`,
      )
  throw new RangeError('they have settings that are not known')
}

const shown = (value: unknown): string => canonical(value).slice(0, 80)
