import { styleText } from 'node:util'

type Format = Parameters<typeof styleText>[0]

export type Paint = (format: Format, text: string) => string

/** Colours, or none. Measure texts before they are painted: what paints has no width. */
export const painter = (colour: boolean): Paint =>
  colour
    ? (format, text) => (text === '' ? '' : styleText(format, text, { validateStream: false }))
    : (_format, text) => text

/** Whether this stream is a terminal with colours; `NO_COLOR` and `FORCE_COLOR` go first. */
export const wantsColour = (stream: NodeJS.WritableStream): boolean => styleText('red', 'x', { stream }) !== 'x'
