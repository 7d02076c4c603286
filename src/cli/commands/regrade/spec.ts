import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runReference, runsFolder } from '../../options/run-reference.ts'

export const regradeSpec = {
  name: 'regrade',
  summary: 'Grade the answers of a run again, with another grader',
  about: [
    'The grader runs in workers, as in a run; the tasks themselves are not run again, and a file that makes a run when it is imported is refused. Earlier grades stay in the store; the new ones count.',
  ],
  positionals: { run: runReference },
  options: {
    grade: {
      type: 'text',
      value: 'FILE',
      description: 'a module that exports a grader; if it exports several, name one: graders.ts#strict',
      suggest: 'files',
    },
    workers: { type: 'integer', short: 'w', value: 'N', description: 'the most worker processes' },
    concurrency: {
      type: 'integer',
      short: 'c',
      value: 'N',
      description: 'how many answers each worker grades at once',
    },
    timeout: {
      type: 'duration',
      value: 'DURATION',
      default: '60s',
      description: 'how long a grader may take for one answer',
    },
    json: { type: 'flag', description: 'print one line of JSON per answer: id, before, after' },
    dir: runsFolder,
  },
  examples: [
    { about: 'with a stricter grader', line: 'manyworlds regrade last --grade graders.ts#strict' },
    { about: 'which grades have changed', line: 'manyworlds regrade nightly-7 --grade graders.ts --json' },
  ],
  exitCodes: { 0: 'every answer has a grade', 1: 'some could not be graded, or the run could not be read' },
} as const satisfies Spec

export type RegradeArgs = ArgsOf<typeof regradeSpec>
