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
      description: 'the folder, which is created if it does not exist; default: the current folder',
      optional: true,
      suggest: 'files',
    },
  },
  options: { force: { type: 'flag', description: 'overwrite existing files' } },
  examples: [
    { about: 'in a new folder', line: 'manyworlds init my-agents' },
    { about: 'and then', line: 'cd my-agents && npm install && npm start' },
  ],
  exitCodes: {
    0: 'the files were written',
    1: 'some files already exist, and nothing was changed; or the folder is not writable',
  },
} as const satisfies Spec

export type InitArgs = ArgsOf<typeof initSpec>
