import { type Command, command } from './command.ts'
import { compareSpec } from './specs/compare.ts'
import { completionSpec } from './specs/completion.ts'
import { doctorSpec } from './specs/doctor.ts'
import { exportSpec } from './specs/export.ts'
import { exportRunSpec } from './specs/export-run.ts'
import { helpSpec } from './specs/help.ts'
import { importSpec } from './specs/import.ts'
import { importRunSpec } from './specs/import-run.ts'
import { initSpec } from './specs/init.ts'
import { modelsSpec } from './specs/models.ts'
import { nodeSpec } from './specs/node.ts'
import { nodesSpec } from './specs/nodes.ts'
import { regradeSpec } from './specs/regrade.ts'
import { rmSpec } from './specs/rm.ts'
import { rolloutServerSpec } from './specs/rollout-server.ts'
import { runSpec } from './specs/run.ts'
import { runsSpec } from './specs/runs.ts'
import { setupSpec } from './specs/setup.ts'
import { showSpec } from './specs/show.ts'
import { tailSpec } from './specs/tail.ts'
import { trainSpec } from './specs/train.ts'
import { trainingsSpec } from './specs/trainings.ts'

/** All commands, in the order in which help lists them. */
export const commands: readonly Command[] = [
  command(runSpec, () => import('./run.ts')),
  command(trainSpec, () => import('./train.ts')),
  command(runsSpec, () => import('./runs.ts')),
  command(trainingsSpec, () => import('./trainings.ts')),
  command(showSpec, () => import('./show.ts')),
  command(tailSpec, () => import('./tail.ts')),
  command(compareSpec, () => import('./compare.ts')),
  command(regradeSpec, () => import('./regrade.ts')),
  command(rmSpec, () => import('./rm.ts')),
  command(exportSpec, () => import('./export.ts')),
  command(importSpec, () => import('./import.ts')),
  command(exportRunSpec, () => import('./export-run.ts')),
  command(importRunSpec, () => import('./import-run.ts')),
  command(modelsSpec, () => import('./models.ts')),
  command(rolloutServerSpec, () => import('./rollout-server.ts')),
  command(nodeSpec, () => import('./node.ts')),
  command(nodesSpec, () => import('./nodes.ts')),
  command(doctorSpec, () => import('./doctor.ts')),
  command(setupSpec, () => import('./setup.ts')),
  command(initSpec, () => import('./init.ts')),
  command(completionSpec, () => import('./completion.ts')),
  command(helpSpec, () => import('./help.ts')),
]
