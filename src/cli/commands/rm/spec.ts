import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runOrTraining, runsFolder } from '../../options/run-reference.ts'

export const rmSpec = {
  name: 'rm',
  summary: 'Remove recorded runs and trainings, or cached answers of models',
  about: [
    'Asks before it removes anything, unless --yes is given. Runs in progress are not removed.',
    'A training is removed with its runs and its weights. A single run of a training is refused, because the training could not be resumed without it. --older-than does not remove trainings.',
    'Cached answers of models ("manyworlds run --cache") belong to the store, not to a run: they stay until --cache removes them.',
  ],
  positionals: { runs: { ...runOrTraining, many: true, optionalWith: ['olderThan', 'cache'] } },
  options: {
    dir: runsFolder,
    olderThan: {
      type: 'duration',
      value: 'DURATION',
      description:
        'runs that began longer ago than this: 12h, 30d; with --cache: answers that were not used for this long',
    },
    cache: { type: 'flag', description: 'remove cached answers of models, and no runs' },
    dryRun: { type: 'flag', description: 'list what would be removed, and remove nothing' },
    yes: { type: 'flag', short: 'y', description: 'do not ask' },
  },
  examples: [
    { about: 'one run', line: 'manyworlds rm nightly-7' },
    { about: 'a training with its runs and weights', line: 'manyworlds rm desk-training' },
    { about: 'what a clean-up would remove', line: 'manyworlds rm --older-than 30d --dry-run' },
    { about: 'the clean-up itself, in a cron job', line: 'manyworlds rm --older-than 30d --yes' },
    { about: 'cached answers that no run has used for 30 days', line: 'manyworlds rm --cache --older-than 30d' },
  ],
  exitCodes: {
    0: 'they were removed, or there were none to remove',
    1: 'some could not be removed, or you answered no',
  },
} as const satisfies Spec

export type RmArgs = ArgsOf<typeof rmSpec>
