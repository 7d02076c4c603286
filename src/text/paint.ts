import { styleText } from 'node:util'

type Format = Parameters<typeof styleText>[0]

export type Paint = (format: Format, text: string) => string

/** Makes a function that colors texts, or leaves them unchanged. */
export const painter = (color: boolean): Paint =>
  color
    ? (format, text) => (text === '' ? '' : styleText(format, text, { validateStream: false }))
    : (_format, text) => text

/** Whether this stream is a terminal with colors. `NO_COLOR` and `FORCE_COLOR` take precedence. */
export const wantsColor = (stream: NodeJS.WritableStream): boolean => styleText('red', 'x', { stream }) !== 'x'

export const painterFor = (stream: NodeJS.WritableStream): Paint => painter(wantsColor(stream))
