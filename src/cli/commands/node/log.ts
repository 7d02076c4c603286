import { escapeControls } from '../../../text/escape-controls.ts'

/** A line of the daemon. What others have sent is in some of them, and must not look like a line of its own. */
export function log(line: string): void {
  for (const part of escapeControls(line).trimEnd().split('\n')) process.stderr.write(`manyworlds node: ${part}\n`)
}
