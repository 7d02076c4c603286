import { say } from '../../../text/say.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { aroundScript, scriptOf } from '../../script/around-script.ts'
import { displaysOf } from '../../script/displays.ts'
import { readTypedModels } from '../../script/model-options.ts'
import { Naming } from '../../script/naming.ts'
import { runToResume } from '../../script/to-resume.ts'
import { typedConfig } from '../../script/typed-config.ts'
import type { RunArgs } from './spec.ts'

const USAGE = 2

/** Runs a script, and shows its runs. */
export async function run(args: RunArgs): Promise<number> {
  const models = readTypedModels(args)
  scriptOf(args.script)
  if (args.maxUngraded !== undefined && args.failUnder === undefined)
    throw new UsageError(
      '--max-ungraded needs --fail-under RATE: without it, rollouts without a result do not decide the exit code',
    )
  const { runId, retryFailed, acceptChanges } = args
  const naming = new Naming({ runId, resume: runToResume(args), retryFailed, acceptChanges })
  const { out: _, ...displays } = displaysOf(args)
  return aroundScript({
    ...{ name: 'run', args, configure: typedConfig(args, models, naming) },
    ...displays,
    nothingDone: ({ runs, trainings, sweeps }) => {
      if (runs + trainings + sweeps > 0) return 0
      say(
        `${args.script} made no run before it ended: call Runners.runTask or Runners.streamTask in it, and await it. The script is imported here, so code that is guarded by import.meta.main does not run`,
      )
      return USAGE
    },
  })
}
