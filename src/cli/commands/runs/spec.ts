import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runsFolder } from '../../options/run-reference.ts'

export const runsSpec = {
  name: 'runs',
  summary: 'List recorded runs, newest first',
  positionals: {},
  options: {
    limit: { type: 'integer', value: 'N', description: 'only the newest N' },
    all: { type: 'flag', description: 'include the runs of trainings' },
    dir: runsFolder,
    json: { type: 'flag', description: 'print one line of JSON per run' },
  },
  examples: [
    { about: 'the last five runs', line: 'manyworlds runs --limit 5' },
    { about: 'the runs of another folder', line: 'manyworlds runs --dir /data/experiments' },
    { about: 'only ids, for a script', line: 'manyworlds runs --json | jq -r .runId' },
  ],
  exitCodes: { 0: 'the runs were listed, if there are any', 1: 'the folder or a run file could not be read' },
} as const satisfies Spec

export type RunsArgs = ArgsOf<typeof runsSpec>
