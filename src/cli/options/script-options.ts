import type { Option } from '../frame/command.ts'

/** Options of every command that runs a script. Each command puts them under its own headings. */
export const scriptOptions = {
  timeout: {
    type: 'duration',
    value: 'DURATION',
    description: 'how long an attempt of a task may run: 30s, 2m, 500ms',
  },
  maxAttempts: { type: 'integer', value: 'N', description: 'how often a failing task is tried' },
  grace: {
    type: 'duration',
    value: 'DURATION',
    default: '10s',
    description: 'how long running tasks and graders may continue after Ctrl-C',
  },
  store: {
    type: 'text',
    alias: 'dir',
    value: 'DIR',
    description: 'the folder of the store; default: $MANYWORLDS_STORE or .manyworlds/runs',
    suggest: 'files',
    excludes: ['noStore'],
  },
  durability: {
    type: 'choice',
    choices: ['normal', 'full'],
    value: 'HOW',
    description: 'what a reported response survives. normal: the death of any process; full: also a power cut',
    excludes: ['noStore'],
  },
  cache: {
    type: 'flag',
    description: 'use model answers from the store, and store new ones',
    excludes: ['noStore'],
  },
  replay: {
    type: 'flag',
    description: 'call no model: use answers from the store, and fail if one is missing',
    excludes: ['cache', 'noStore'],
  },
  showLogs: { type: 'flag', description: 'print what tasks print, with their ids' },
  view: {
    type: 'flag',
    description:
      'show the run in the browser (see `manyworlds help view`); at a terminal, the page stays open until Ctrl-C',
    excludes: ['noStore'],
  },
  quiet: { type: 'flag', short: 'q', description: 'print no progress and no summary' },
  noProgress: { type: 'flag', description: 'print only a summary at the end' },
} as const satisfies Readonly<Record<string, Option>>
