import type { ArgsOf, Spec } from '../command.ts'
import { runReference, runsFolder } from './run-reference.ts'

export const rmSpec = {
  name: 'rm',
  summary: 'Remove recorded runs',
  about: ['Asks before it removes anything, unless --yes is given. A run that is going on is not removed.'],
  positionals: { runs: { ...runReference, many: true, optionalWith: 'olderThan' } },
  options: {
    dir: runsFolder,
    olderThan: { type: 'duration', value: 'DURATION', description: 'runs that began longer ago than this: 12h, 30d' },
    dryRun: { type: 'flag', description: 'say what would be removed, and remove nothing' },
    yes: { type: 'flag', short: 'y', description: 'do not ask' },
  },
  examples: [
    { about: 'one run', line: 'manyworlds rm nightly-7' },
    { about: 'what a clean-up would remove', line: 'manyworlds rm --older-than 30d --dry-run' },
    { about: 'the clean-up itself, from a cron job', line: 'manyworlds rm --older-than 30d --yes' },
  ],
  exitCodes: { 0: 'they were removed, or there were none to remove', 1: 'some could not be removed, or you said no' },
} as const satisfies Spec

export type RmArgs = ArgsOf<typeof rmSpec>
