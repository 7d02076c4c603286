import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runsFolder } from '../../options/run-reference.ts'

export const trainingsSpec = {
  name: 'trainings',
  summary: 'List the trainings that were recorded, newest first',
  about: [
    'solved: of the episodes that the last update has learned from. validation and test: of the newest version that was evaluated.',
  ],
  positionals: {},
  options: {
    limit: { type: 'integer', value: 'N', description: 'the newest N only' },
    dir: runsFolder,
    json: { type: 'flag', description: 'print a line of JSON for each training' },
  },
  examples: [
    { about: 'how trainings go', line: 'manyworlds trainings' },
    { about: 'the newest one', line: 'manyworlds trainings --limit 1' },
    {
      about: 'digests of their curves: equal ones are equal to the last bit',
      line: 'manyworlds trainings --json | jq -r .curve',
    },
  ],
  exitCodes: { 0: 'the trainings were listed, if there are any', 1: 'the folder or a training could not be read' },
} as const satisfies Spec

export type TrainingsArgs = ArgsOf<typeof trainingsSpec>
