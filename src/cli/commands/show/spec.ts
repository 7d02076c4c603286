import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runOrTraining, runsFolder } from '../../options/run-reference.ts'

export const showSpec = {
  name: 'show',
  summary: 'Show a run, one of its tasks step by step, or a training',
  about: [
    'Of a run: its configuration, counts, failures and slowest tasks. Of a task: input, every step of its trajectory, with conversations as such, logs, attempts, how it ended, its grade, and the answer or the error.',
    'Of a training: its curves, what the learner said, alarms, evaluations with their 95 % intervals, the best version, the digest of the curve, and its runs, which are shown as any other.',
  ],
  positionals: {
    run: runOrTraining,
    task: { value: 'TASK', description: 'the id of a task of that run', optional: true },
  },
  options: {
    dir: runsFolder,
    by: {
      type: 'text',
      value: 'KEY',
      description: "how good answers are for each value of this key of the tasks' metadata",
    },
    failed: { type: 'flag', description: 'only tasks that did not succeed' },
    logs: { type: 'flag', description: 'each task step by step, with what it printed' },
    limit: { type: 'integer', value: 'N', description: 'at most so many tasks; of a training, evaluations' },
    full: { type: 'flag', description: 'long texts to their end' },
    json: {
      type: 'flag',
      description: 'print JSON: a line for each response, or all that is known of a task or a training',
    },
  },
  examples: [
    { about: 'the newest run', line: 'manyworlds show last' },
    { about: 'what went wrong in it', line: 'manyworlds show last --failed --logs' },
    { about: 'how good its answers are, by level', line: 'manyworlds show last --by level' },
    { about: 'how a training goes', line: 'manyworlds show desk-training' },
    { about: 'one task of a run, step by step', line: 'manyworlds show nightly-7 task42' },
  ],
  exitCodes: { 0: 'it was shown', 1: 'the run file could not be read' },
} as const satisfies Spec

export type ShowArgs = ArgsOf<typeof showSpec>
