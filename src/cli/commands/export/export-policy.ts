import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ManyworldsError } from '../../../errors.ts'
import type { FoundTraining } from '../../../store/trainings/find-training.ts'
import { StoredTraining } from '../../../store/trainings/stored-training.ts'
import { escapeControls } from '../../../text/escape-controls.ts'
import { saveAdapter } from '../../../train/lora/adapter-folder.ts'
import { adapterConfig } from '../../../train/lora/peft-folder.ts'
import { savePolicy } from '../../../train/policy-folder.ts'
import { policyOfWeights } from '../../../train/policy-of-weights.ts'
import { CHANGES } from '../../../train/prompts/text-files.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { changesOf } from '../../render/text-changes.ts'
import type { ExportArgs } from './spec.ts'

/**
 * Writes a version of a trained policy to a folder, as `savePolicy` does. The weights contain all settings, so the code
 * of the agent is not needed.
 */
export async function exportPolicy(found: FoundTraining, folder: string, args: ExportArgs): Promise<number> {
  if (existsSync(join(folder, 'policy.json')) && !args.force)
    throw new UsageError(`${folder} already has a policy; use --force to replace it`)
  using training = StoredTraining.at(found)
  const { version, why } = chosen(training, args.version)
  const bytes = await training.weights(version)
  const { policy: name } = training.versions().find((row) => row.version === version)!
  const core = await save(folder, name, { version, bytes })
  const changes = await changesOf(training, version)
  if (changes !== undefined) await writeFile(join(folder, CHANGES), changes)
  process.stderr.write(escapeControls(`version ${version}${why} of training ${training.id}: ${folder} (${core})\n`))
  return 0
}

/** Returns the kind of policy. */
async function save(folder: string, name: string, version: { version: number; bytes: Uint8Array }): Promise<string> {
  if (adapterConfig(version.bytes) !== undefined) {
    await saveAdapter(folder, name, version)
    return 'a LoRA adapter, for PEFT, vLLM and SGLang'
  }
  const policy = policyOfWeights(name, version.bytes)
  await savePolicy(folder, policy, version)
  return policy.core
}

function chosen(training: StoredTraining, wanted: number | undefined): { version: number; why: string } {
  if (wanted !== undefined) return { version: wanted, why: '' }
  const { best } = training.overview()
  if (best !== undefined) return { version: best, why: ', the best by validation,' }
  const last = training.versions().findLast(({ kept }) => kept)
  if (last) return { version: last.version, why: ', the last,' }
  throw new ManyworldsError('STORE_GONE', `training '${training.id}' has no version whose weights are kept`)
}
