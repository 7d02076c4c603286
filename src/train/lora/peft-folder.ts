import { mkdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import { writeWhole } from '../write-whole.ts'

/** A larger header means that this is another kind of file. */
const MAX_HEADER_BYTES = 16 * 1024 * 1024

/**
 * The PEFT configuration of an adapter, from its safetensors metadata; undefined if these are not the bytes of an
 * adapter.
 */
export function adapterConfig(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  if (bytes.length < 8) return undefined
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true))
  if (length > MAX_HEADER_BYTES || length > bytes.length - 8) return undefined
  try {
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length))) as {
      readonly __metadata__?: { readonly adapter_config?: string }
    }
    const config = header.__metadata__?.adapter_config
    return config === undefined ? undefined : (JSON.parse(config) as Record<string, unknown>)
  } catch {
    return undefined
  }
}

/**
 * Writes an adapter in the format of PEFT, vLLM and SGLang, atomically: the folder exists completely or not at all.
 * `base`: the base model to name in the configuration.
 */
export async function writePeftFolder(folder: string, bytes: Uint8Array, base?: string): Promise<void> {
  const config = adapterConfig(bytes)
  if (config === undefined)
    throw new ManyworldsError('POLICY_INVALID', `these ${bytes.length} bytes are not a LoRA adapter`)
  const named = base === undefined ? config : { ...config, base_model_name_or_path: base }
  const unfinished = join(dirname(folder), `.${basename(folder)}.${process.pid}`)
  try {
    await mkdir(unfinished, { recursive: true })
    await writeWhole(join(unfinished, 'adapter_config.json'), `${JSON.stringify(named, null, 2)}\n`)
    await writeWhole(join(unfinished, 'adapter_model.safetensors'), bytes)
    await rm(folder, { recursive: true, force: true })
    await rename(unfinished, folder)
  } catch (cause) {
    await rm(unfinished, { recursive: true, force: true })
    throw new ManyworldsError('POLICY_INVALID', `cannot write the adapter to ${folder}: ${(cause as Error).message}`, {
      cause,
    })
  }
}
