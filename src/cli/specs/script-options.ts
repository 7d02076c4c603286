import type { Option } from '../command.ts'

/** What all commands have that run a script. Each puts them under its own headings. */
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
  quiet: { type: 'flag', short: 'q', description: 'print no progress and no summary' },
  noProgress: { type: 'flag', description: 'print no progress, but a summary at the end' },
} as const satisfies Readonly<Record<string, Option>>
