import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runsFolder } from '../../options/run-reference.ts'

export const trainingsSpec = {
  name: 'trainings',
  summary: 'List recorded trainings, newest first',
  about: [
    'solved: the share of solved episodes in the last update. validation and test: the newest evaluated version.',
  ],
  positionals: {},
  options: {
    limit: { type: 'integer', value: 'N', description: 'only the newest N' },
    dir: runsFolder,
    json: { type: 'flag', description: 'print one line of JSON per training' },
  },
  examples: [
    { about: 'all trainings', line: 'manyworlds trainings' },
    { about: 'the newest one', line: 'manyworlds trainings --limit 1' },
    {
      about: 'digests of their curves: equal digests mean bit-identical curves',
      line: 'manyworlds trainings --json | jq -r .curve',
    },
  ],
  exitCodes: { 0: 'the trainings were listed, if there are any', 1: 'the folder or a training could not be read' },
} as const satisfies Spec

export type TrainingsArgs = ArgsOf<typeof trainingsSpec>
