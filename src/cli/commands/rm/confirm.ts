import { createInterface } from 'node:readline/promises'
import { oneLine } from '../../../text/escape-controls.ts'
import { UsageError } from '../../frame/usage-error.ts'

/** The exit code after Ctrl-C. */
export const INTERRUPTED = 130

/** Asks for confirmation on the terminal. `names`: what will be removed, one line each. */
export async function confirm(names: readonly string[], question: string): Promise<'yes' | 'no' | 'interrupted'> {
  if (!process.stdin.isTTY)
    throw new UsageError(
      'cannot ask for confirmation, because stdin is not a terminal; give --yes to remove without asking',
    )
  for (const name of names) process.stderr.write(`  ${oneLine(name)}\n`)
  const asking = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await asking.question(`${question} [y/N] `)
    return /^y(es)?$/i.test(answer.trim()) ? 'yes' : 'no'
  } catch (error) {
    // Ctrl-C, or the end of the input.
    process.stderr.write('\n')
    return (error as Error).message.includes('Ctrl+C') ? 'interrupted' : 'no'
  } finally {
    asking.close()
  }
}
