import { fileURLToPath } from 'node:url'
import type { Policy } from '../../agents/policy.ts'
import { ownPackage } from '../../own-package.ts'
import type { ResolvedConfig } from '../../run-config-schema.ts'
import { entryScript } from '../../runners/environment.ts'
import type { RunIdentity } from '../../runners/run-identity.ts'
import { invalid, type Settings } from './settings.ts'
import type { EvaluationFigures, TrainingRecord, UpdateReport } from './training-record.ts'
import { UnstoredTraining } from './unstored-training.ts'

/** Opens the record of a training: in the store, or in memory if there is none. */
export async function openRecord(
  { runId: id, place, mode }: RunIdentity,
  { durability }: Pick<ResolvedConfig, 'durability'>,
  { agent, seed }: Settings,
  policy: Policy,
  config: unknown,
): Promise<TrainingRecord> {
  if (place === undefined) return new UnstoredTraining(id, config)
  if (!place.shared)
    throw invalid(
      `\`store\` is ${place.path}, a file for one run, but a training has many runs; set \`store\` to a folder`,
    )
  const { TrainingDb } = await import('../../store/trainings/training-db.ts')
  const script = entryScript()
  return TrainingDb.open<UpdateReport, EvaluationFigures>({
    ...{ ...place, id, mode, durability },
    begin: {
      manyworlds: ownPackage.version,
      ...(script !== undefined && { script: fileURLToPath(script) }),
      ...{ agent: agent.name, policy: policy.name, seed, config },
    },
  })
}
