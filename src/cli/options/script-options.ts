import type { Option } from '../frame/command.ts'

/** Options of every command that runs a script. Each command puts them under its own headings. */
export const scriptOptions = {
  timeout: {
    type: 'duration',
    value: 'DURATION',
    description: 'how long a task may run, per attempt: 30s, 2m, 500ms',
  },
  maxAttempts: { type: 'integer', value: 'N', description: 'how often a task is tried' },
  grace: {
    type: 'duration',
    value: 'DURATION',
    default: '10s',
    description: 'how long running tasks may still take after Ctrl-C',
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
    description: 'normal: what is reported survives a crash of every process; full: and a loss of power',
    excludes: ['noStore'],
  },
  cache: {
    type: 'flag',
    description: 'use answers of models that the store has, and store new ones',
    excludes: ['noStore'],
  },
  replay: {
    type: 'flag',
    description: 'call no model: use answers that the store has, and fail where there is none',
    excludes: ['cache', 'noStore'],
  },
  showLogs: { type: 'flag', description: 'print what tasks print, with their ids' },
  view: {
    type: 'flag',
    description:
      'show it in the browser (see `manyworlds help view`); at a terminal, the page stays until Ctrl-C when the script is done',
    excludes: ['noStore'],
  },
  quiet: { type: 'flag', short: 'q', description: 'print no progress and no summary' },
  noProgress: { type: 'flag', description: 'print no progress, but a summary at the end' },
} as const satisfies Readonly<Record<string, Option>>
