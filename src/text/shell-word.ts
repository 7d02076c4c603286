import { visible } from './visible.ts'

/** As one word of a command that can be copied into a shell: `#3` would be a comment there. */
export const shellWord = (text: string): string =>
  /^[\w./:@%+=,-]+$/.test(text) ? text : `'${visible(text).replaceAll("'", `'\\''`)}'`
