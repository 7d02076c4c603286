import { bash, fish, zsh } from './completion-scripts.ts'
import type { CompletionArgs } from './specs/completion.ts'

/** `manyworlds completion SHELL` */
export async function run({ shell }: CompletionArgs): Promise<number> {
  process.stdout.write({ bash, zsh, fish }[shell])
  return 0
}
