import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runReference, runsFolder } from '../../options/run-reference.ts'

export const regradeSpec = {
  name: 'regrade',
  summary: 'Grade the answers of a run again, by another grader',
  about: [
    'The grader runs in workers, as in a run; the tasks themselves are not run again. Earlier grades are kept in the store, and the new ones count.',
  ],
  positionals: { run: runReference },
  options: {
    grade: {
      type: 'text',
      value: 'FILE',
      description: 'a module that exports a grader; of several, name one: graders.ts#strict',
      suggest: 'files',
    },
    workers: { type: 'integer', short: 'w', value: 'N', description: 'at most so many worker processes' },
    concurrency: { type: 'integer', short: 'c', value: 'N', description: 'answers graded at once in each worker' },
    timeout: {
      type: 'duration',
      value: 'DURATION',
      default: '60s',
      description: 'how long a grader may take for one answer',
    },
    json: { type: 'flag', description: 'print a line of JSON for each answer: id, before, after' },
    dir: runsFolder,
  },
  examples: [
    { about: 'with a stricter grader', line: 'manyworlds regrade last --grade graders.ts#strict' },
    { about: 'what has changed', line: 'manyworlds regrade nightly-7 --grade graders.ts --json' },
  ],
  exitCodes: { 0: 'every answer has a grade', 1: 'some could not be graded, or the run could not be read' },
} as const satisfies Spec

export type RegradeArgs = ArgsOf<typeof regradeSpec>
