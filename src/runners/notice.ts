import { say } from '../text/say.ts'

/** What a user should know and nobody asked for. */
export function notice(line: string): void {
  say(line)
}
