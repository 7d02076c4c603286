import type { ArgsOf, Spec } from '../../frame/command.ts'

export const helpSpec = {
  name: 'help',
  summary: 'Explain a command',
  positionals: {
    command: {
      value: 'COMMAND',
      description: 'the command to explain; default: list all commands',
      optional: true,
      // Imported here, because the list of commands contains this spec.
      suggest: async () => (await import('../../commands.ts')).commands.map(({ spec }) => spec.name),
    },
  },
  options: {},
  examples: [
    { about: 'all commands', line: 'manyworlds help' },
    { about: 'one of them; "manyworlds run --help" is the same', line: 'manyworlds help run' },
  ],
  exitCodes: { 0: 'the help was printed' },
} as const satisfies Spec

export type HelpArgs = ArgsOf<typeof helpSpec>
