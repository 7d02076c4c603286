import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runReference, runsFolder } from '../../options/run-reference.ts'

export const tailSpec = {
  name: 'tail',
  summary: 'Follow a run in progress, also from another terminal',
  about: ['Prints each response when it is recorded, and ends with the run. Ctrl-C ends this command, not the run.'],
  positionals: { run: runReference },
  options: {
    dir: runsFolder,
    fromStart: {
      type: 'flag',
      description: 'begin with the first recorded response (and step), not with the next',
    },
    steps: { type: 'flag', description: 'also print steps, while their tasks run' },
    json: { type: 'flag', description: 'print one line of JSON per response' },
  },
  examples: [
    { about: 'follow the newest run', line: 'manyworlds tail last' },
    {
      about: 'all responses so far, then new ones, for another program',
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
