import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runReference, runsFolder } from '../../options/run-reference.ts'

export const tailSpec = {
  name: 'tail',
  summary: 'Follow a run while it goes on, also from another terminal',
  about: ['Prints each response when it is recorded, and ends with the run. Ctrl-C ends the following, not the run.'],
  positionals: { run: runReference },
  options: {
    dir: runsFolder,
    fromStart: {
      type: 'flag',
      description: 'begin with the first response (and step) that was recorded, not with the next',
    },
    steps: { type: 'flag', description: 'steps too, while their tasks run' },
    json: { type: 'flag', description: 'print a line of JSON for each response' },
  },
  examples: [
    { about: 'follow the newest run', line: 'manyworlds tail last' },
    {
      about: 'everything so far, and what is still to come, for another program',
      line: 'manyworlds tail nightly-7 --from-start --json | jq .status',
    },
  ],
  exitCodes: {
    0: 'the run has ended',
    1: 'the run file could not be read',
    130: 'interrupted with Ctrl-C',
  },
} as const satisfies Spec

export type TailArgs = ArgsOf<typeof tailSpec>
