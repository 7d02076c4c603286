import { say } from '../text/say.ts'
import { aroundScript, scriptOf } from './run/around-script.ts'
import { displaysOf } from './run/displays.ts'
import { readTypedModels } from './run/model-options.ts'
import { Naming } from './run/naming.ts'
import { runToResume } from './run/to-resume.ts'
import { typedConfig } from './run/typed-config.ts'
import type { RunArgs } from './specs/run.ts'

/** Runs a script, and shows its runs. */
export async function run(args: RunArgs): Promise<number> {
  const models = readTypedModels(args)
  scriptOf(args.script)
  const naming = new Naming({ runId: args.runId, resume: runToResume(args), retryFailed: args.retryFailed })
  const { out: _, ...displays } = displaysOf(args)
  return aroundScript({
    ...{ name: 'run', args, configure: typedConfig(args, models, naming) },
    ...displays,
    nothingDone: (outcome) => {
      if (outcome.runs + outcome.trainings + outcome.sweeps === 0 && !args.quiet) sayThatNothingRan(args.script)
      return 0
    },
  })
}

function sayThatNothingRan(script: string): void {
  say(`${script} made no run. Here it is imported: code that is guarded by import.meta.main does not run`)
}
