import type { FoundTraining } from '../../store/trainings/find-training.ts'
import { StoredTraining } from '../../store/trainings/stored-training.ts'
import type { VersionRow } from '../../store/trainings/training-rows.ts'
import { beginningOf } from '../../text/beginning.ts'
import { unpackTexts } from '../../train/prompts/texts.ts'
import type { TrainingDetails } from '../api.ts'

/** The most versions whose texts are read: the newest. */
const MOST_TEXTS = 100
const MOST_BYTES = 256 * 1024

export async function trainingDetails(found: FoundTraining): Promise<TrainingDetails> {
  using training = StoredTraining.at(found)
  const plans = training.plans()
  const runOf = new Map(plans.map(({ number, run }) => [number, run]))
  const versions = training.versions()
  const texts = await textsOf(training, versions)
  return {
    overview: training.overview(),
    config: training.config(),
    plans: plans.map(({ tasks, ...plan }) => ({ ...plan, tasks: tasks.length })),
    updates: training.updates().map(({ members, ...update }) => {
      const run = runOf.get(update.number)
      return { ...update, members: members.length, ...(run !== undefined && { run }) }
    }),
    versions,
    evaluations: training.evaluations(),
    runs: training.runsOf(),
    ...(texts && { texts }),
  }
}

/** Undefined: the policy does not consist of texts. */
async function textsOf(training: StoredTraining, versions: readonly VersionRow[]): Promise<TrainingDetails['texts']> {
  const texts: { version: number; text: string }[] = []
  for (const { version, bytes } of versions.filter(({ kept }) => kept).slice(-MOST_TEXTS)) {
    if (bytes > MOST_BYTES) return undefined
    const found = unpackTexts(await training.weights(version).catch(() => new Uint8Array()))
    if (found === undefined) return undefined
    const parts = Object.entries(found)
    const text = parts.map(([name, part]) => (parts.length === 1 ? part : `# ${name}\n\n${part}`)).join('\n\n')
    texts.push({ version, text: beginningOf(text, MOST_BYTES) })
  }
  return texts.length === 0 ? undefined : texts
}
