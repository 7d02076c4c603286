import { say } from '../../../text/say.ts'
import { trainableOf } from '../../../train/pipeline/trainable.ts'
import { sinkOf } from '../../../train/sinks/sink-of.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { aroundScript, scriptOf } from '../../script/around-script.ts'
import { displaysOf } from '../../script/displays.ts'
import { readTypedModels } from '../../script/model-options.ts'
import { Naming } from '../../script/naming.ts'
import { trainingToResume } from '../../script/to-resume.ts'
import { typedConfig } from '../../script/typed-config.ts'
import type { TrainArgs } from './spec.ts'
import { printSweep } from './sweep-table.ts'

const USAGE = 2

/** Runs a script that trains by itself, or trains the pipeline that it exports. */
export async function run(args: TrainArgs): Promise<number> {
  const models = readTypedModels(args)
  scriptOf(args.script)
  const { epochs, tasksPerEpoch, log } = args
  for (const sink of log) sinkOf(sink)
  const naming = new Naming({ runId: args.runId, resume: trainingToResume(args), retryFailed: false })
  const { out, ...displays } = displaysOf(args)
  return aroundScript({
    ...{ name: 'train', args, configure: typedConfig(args, models, naming) },
    ...displays,
    training: {
      ...(epochs !== undefined && { epochs }),
      ...(tasksPerEpoch !== undefined && { tasksPerEpoch }),
      ...(args.overlap && { overlap: true }),
      log,
    },
    afterwards: async (exported, outcome) => {
      if (outcome.trainings + outcome.sweeps > 0) return
      const found = exportedTraining(exported)
      if (found === undefined) throw new UsageError(noTraining(args.script, outcome.runs))
      const sweep = await found.train()
      if (sweep) printSweep(sweep, args.json, out)
    },
    nothingDone: ({ trainings, sweeps, runs }) => {
      if (trainings + sweeps > 0) return 0
      say(noTraining(args.script, runs))
      return USAGE
    },
  })
}

/** The training that a script exports: as default, as `pipeline`, or under another name if it is the only one. */
function exportedTraining(exported: object) {
  const found = Object.entries(exported).flatMap(([name, value]) => {
    const training = trainableOf(value)
    return training ? [{ name, value, training }] : []
  })
  const named = found.find(({ name }) => name === 'default') ?? found.find(({ name }) => name === 'pipeline')
  if (named) return named.training
  if (new Set(found.map(({ value }) => value)).size > 1)
    throw new UsageError(
      `the script exports several trainings: ${found.map(({ name }) => name).join(', ')}; export one of them as default`,
    )
  return found[0]?.training
}

const noTraining = (script: string, runs: number): string =>
  `${script} made no training: it neither trains a DistributedTrainingPipeline nor exports one${runs > 0 ? '; use `manyworlds run` for runs' : ''}`
