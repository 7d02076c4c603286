import { compareSpec } from './commands/compare/spec.ts'
import { completionSpec } from './commands/completion/spec.ts'
import { doctorSpec } from './commands/doctor/spec.ts'
import { exportSpec } from './commands/export/spec.ts'
import { exportRunSpec } from './commands/export-run/spec.ts'
import { helpSpec } from './commands/help/spec.ts'
import { importSpec } from './commands/import/spec.ts'
import { importRunSpec } from './commands/import-run/spec.ts'
import { initSpec } from './commands/init/spec.ts'
import { modelsSpec } from './commands/models/spec.ts'
import { nodeSpec } from './commands/node/spec.ts'
import { nodesSpec } from './commands/nodes/spec.ts'
import { regradeSpec } from './commands/regrade/spec.ts'
import { rmSpec } from './commands/rm/spec.ts'
import { rolloutServerSpec } from './commands/rollout-server/spec.ts'
import { runSpec } from './commands/run/spec.ts'
import { runsSpec } from './commands/runs/spec.ts'
import { setupSpec } from './commands/setup/spec.ts'
import { showSpec } from './commands/show/spec.ts'
import { tailSpec } from './commands/tail/spec.ts'
import { trainSpec } from './commands/train/spec.ts'
import { trainingsSpec } from './commands/trainings/spec.ts'
import { viewSpec } from './commands/view/spec.ts'
import { type Command, command } from './frame/command.ts'

/** All commands, in the order in which help lists them. */
export const commands: readonly Command[] = [
  command(runSpec, () => import('./commands/run/action.ts')),
  command(trainSpec, () => import('./commands/train/action.ts')),
  command(runsSpec, () => import('./commands/runs/action.ts')),
  command(trainingsSpec, () => import('./commands/trainings/action.ts')),
  command(showSpec, () => import('./commands/show/action.ts')),
  command(tailSpec, () => import('./commands/tail/action.ts')),
  command(viewSpec, () => import('./commands/view/action.ts')),
  command(compareSpec, () => import('./commands/compare/action.ts')),
  command(regradeSpec, () => import('./commands/regrade/action.ts')),
  command(rmSpec, () => import('./commands/rm/action.ts')),
  command(exportSpec, () => import('./commands/export/action.ts')),
  command(importSpec, () => import('./commands/import/action.ts')),
  command(exportRunSpec, () => import('./commands/export-run/action.ts')),
  command(importRunSpec, () => import('./commands/import-run/action.ts')),
  command(modelsSpec, () => import('./commands/models/action.ts')),
  command(rolloutServerSpec, () => import('./commands/rollout-server/action.ts')),
  command(nodeSpec, () => import('./commands/node/action.ts')),
  command(nodesSpec, () => import('./commands/nodes/action.ts')),
  command(doctorSpec, () => import('./commands/doctor/action.ts')),
  command(setupSpec, () => import('./commands/setup/action.ts')),
  command(initSpec, () => import('./commands/init/action.ts')),
  command(completionSpec, () => import('./commands/completion/action.ts')),
  command(helpSpec, () => import('./commands/help/action.ts')),
]
