import { visible } from './visible.ts'

/** A line of ours on stderr. Much of what we have to say was written by others: nothing of it may steer the terminal. */
export function say(line: string): void {
  process.stderr.write(`manyworlds: ${visible(line)}\n`)
}
