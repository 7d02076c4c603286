import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runOrTraining, runsFolder } from '../../options/run-reference.ts'

export const showSpec = {
  name: 'show',
  summary: 'Show a run, one of its tasks step by step, or a training',
  about: [
    'For a run: its configuration, counts, failures and slowest tasks. For a task: input, every step of its trajectory, logs, attempts, how it ended, its grade, and the answer or the error.',
    'For a training: its curves, the metrics of the learner, alarms, evaluations with their 95 % intervals, the best version, the digest of the curve, and its runs, which are shown like any run.',
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
      description: "the success rate for each value of this key of the tasks' metadata",
    },
    failed: { type: 'flag', description: 'only tasks that did not succeed' },
    unsolved: { type: 'flag', description: 'only tasks that have a result and are not solved, such as wrong answers' },
    logs: { type: 'flag', description: 'show each task step by step, with the lines that it printed' },
    limit: {
      type: 'integer',
      value: 'N',
      description: 'at most this many tasks; for a training, evaluations and alarms',
    },
    full: { type: 'flag', description: 'do not shorten long texts' },
    json: {
      type: 'flag',
      description: 'print JSON: one line per response, or everything about a task or a training',
    },
  },
  examples: [
    { about: 'the newest run', line: 'manyworlds show last' },
    { about: 'its failed tasks, with their logs', line: 'manyworlds show last --failed --logs' },
    { about: 'its wrong answers', line: 'manyworlds show last --unsolved' },
    { about: 'its success rate, by level', line: 'manyworlds show last --by level' },
    { about: 'the progress of a training', line: 'manyworlds show desk-training' },
    { about: 'one task of a run, step by step', line: 'manyworlds show nightly-7 task42' },
  ],
  exitCodes: { 0: 'it was shown', 1: 'the run file could not be read' },
} as const satisfies Spec

export type ShowArgs = ArgsOf<typeof showSpec>
