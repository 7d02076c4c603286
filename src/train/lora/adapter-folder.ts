import { hash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import { wordsOf } from '../../text/thrown.ts'
import { writeWhole } from '../write-whole.ts'
import { adapterConfig } from './peft-folder.ts'

/** The file name that PEFT, vLLM and SGLang expect for the weights of an adapter. */
const WEIGHTS = 'adapter_model.safetensors'

/** Writes an adapter to a folder in the format of PEFT, vLLM and SGLang, with a description for `loadPolicy`. */
export async function saveAdapter(
  folder: string,
  name: string,
  { version, bytes }: { readonly version: number; readonly bytes: Uint8Array },
): Promise<void> {
  const weights = { file: WEIGHTS, sha256: hash('sha256', bytes), bytes: bytes.length }
  const description = { kind: 'manyworlds.policy', format: 1, core: 'lora', name, version, weights }
  try {
    await mkdir(folder, { recursive: true })
    await writeWhole(join(folder, WEIGHTS), bytes)
    await writeWhole(join(folder, 'adapter_config.json'), `${JSON.stringify(adapterConfig(bytes), null, 2)}\n`)
    await writeWhole(join(folder, 'policy.json'), `${JSON.stringify(description, null, 2)}\n`)
  } catch (cause) {
    throw new ManyworldsError('EXPORT_FAILED', `cannot write ${folder}: ${wordsOf(cause).message}`, { cause })
  }
}
