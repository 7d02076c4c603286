import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runReference, runsFolder } from '../../options/run-reference.ts'

export const compareSpec = {
  name: 'compare',
  summary: 'Compare two graded runs, task by task',
  about: [
    'Tasks are paired by their ids. The difference in solved tasks and in reward has an interval over tasks; tasks that only one of the runs has are left out and counted.',
    'Runs in which a task has another input, ground truth or grader get no verdict, and what differs is named.',
  ],
  positionals: {
    a: { ...runReference, value: 'A' },
    b: { ...runReference, value: 'B' },
  },
  options: {
    dir: runsFolder,
    flips: {
      type: 'integer',
      value: 'N',
      default: '10',
      min: 0,
      description: 'list at most this many tasks that changed between solved and unsolved',
    },
    confidence: {
      ...{ type: 'number', above: 0, max: 0.9999, value: 'P', default: '0.95' },
      description: 'the confidence of the intervals',
    },
    anyway: {
      type: 'flag',
      description: 'also compare runs whose tasks have other inputs or ground truths, or other graders',
    },
    json: { type: 'flag', description: 'print JSON: all figures, and all tasks that changed sides' },
  },
  examples: [
    { about: 'is the new prompt better?', line: 'manyworlds compare old-prompt new-prompt' },
    { about: 'the last run and another, for a program', line: 'manyworlds compare nightly-7 last --json' },
  ],
  exitCodes: { 0: 'the runs were compared', 1: 'a run could not be read' },
} as const satisfies Spec

export type CompareArgs = ArgsOf<typeof compareSpec>
