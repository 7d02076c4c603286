import { escapeControls } from './escape-controls.ts'

/** Prints a line on stderr. Control characters are escaped, because messages may quote text of others. */
export function say(line: string): void {
  process.stderr.write(`manyworlds: ${escapeControls(line)}\n`)
}
