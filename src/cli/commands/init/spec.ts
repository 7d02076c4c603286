import type { ArgsOf, Spec } from '../../frame/command.ts'

export const initSpec = {
  name: 'init',
  summary: 'Make a small project to start from',
  about: [
    'Writes package.json, agents.ts, tsconfig.json, .gitignore and README.md. If one of them exists, nothing is written, unless --force is given.',
  ],
  positionals: {
    dir: {
      value: 'DIR',
      description: 'the folder, made if it is not there (default: this one)',
      optional: true,
      suggest: 'files',
    },
  },
  options: { force: { type: 'flag', description: 'overwrite files that exist' } },
  examples: [
    { about: 'in a new folder', line: 'manyworlds init my-agents' },
    { about: 'and then', line: 'cd my-agents && npm install && npm start' },
  ],
  exitCodes: {
    0: 'the files were written',
    1: 'some exist already, and nothing was changed; or the folder cannot be written to',
  },
} as const satisfies Spec

export type InitArgs = ArgsOf<typeof initSpec>
