import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runsFolder } from '../../options/run-reference.ts'

export const runsSpec = {
  name: 'runs',
  summary: 'List the runs that were recorded, newest first',
  positionals: {},
  options: {
    limit: { type: 'integer', value: 'N', description: 'the newest N only' },
    all: { type: 'flag', description: 'those of trainings too' },
    dir: runsFolder,
    json: { type: 'flag', description: 'print a line of JSON for each run' },
  },
  examples: [
    { about: 'how the last runs went', line: 'manyworlds runs --limit 5' },
    { about: 'runs that are kept elsewhere', line: 'manyworlds runs --dir /data/experiments' },
    { about: 'ids only, for a script', line: 'manyworlds runs --json | jq -r .runId' },
  ],
  exitCodes: { 0: 'the runs were listed, if there are any', 1: 'the folder or a run file could not be read' },
} as const satisfies Spec

export type RunsArgs = ArgsOf<typeof runsSpec>
