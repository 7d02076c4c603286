import { bash, fish, zsh } from './scripts.ts'
import type { CompletionArgs } from './spec.ts'

/** `manyworlds completion SHELL` */
export async function run({ shell }: CompletionArgs): Promise<number> {
  process.stdout.write({ bash, zsh, fish }[shell])
  return 0
}
