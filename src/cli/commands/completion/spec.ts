import type { ArgsOf, Spec } from '../../frame/command.ts'

export const completionSpec = {
  name: 'completion',
  summary: 'Print a script that makes the tab key work in your shell',
  about: ['Completes commands, options, files and the ids of runs, in shells that find manyworlds on their PATH.'],
  positionals: {
    shell: { value: 'SHELL', description: 'bash, zsh or fish', choices: ['bash', 'zsh', 'fish'] },
  },
  options: {},
  examples: [
    { about: 'bash: in ~/.bashrc', line: 'source <(manyworlds completion bash)' },
    { about: 'zsh: in ~/.zshrc, after compinit', line: 'source <(manyworlds completion zsh)' },
    { about: 'fish: once', line: 'manyworlds completion fish > ~/.config/fish/completions/manyworlds.fish' },
  ],
  exitCodes: { 0: 'the script was printed' },
} as const satisfies Spec

export type CompletionArgs = ArgsOf<typeof completionSpec>
