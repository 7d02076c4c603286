import { escapeControls } from '../../../text/escape-controls.ts'

/**
 * Prints a line of the daemon. Control characters are escaped, because a line may quote text from the network, which must
 * not forge another line.
 */
export function log(line: string): void {
  for (const part of escapeControls(line).trimEnd().split('\n')) process.stderr.write(`manyworlds node: ${part}\n`)
}
