/** What a user should know and nobody asked for. */
export function notice(line: string): void {
  process.stderr.write(`manyworlds: ${line}\n`)
}
