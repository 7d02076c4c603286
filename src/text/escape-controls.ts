/** Control and bidirectional characters, and lone surrogates. */
const INVISIBLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
const TAB = '    '

/** Makes a text safe to print: control characters are escaped (`\x1b`). Only line feeds stay. */
export function escapeControls(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(INVISIBLE, (character) => {
    if (character === '\n') return character
    if (character === '\t') return TAB
    const code = character.charCodeAt(0)
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

/** The same, with line feeds escaped too. */
export const oneLine = (text: string): string => escapeControls(text).replaceAll('\n', '\\n')

/** The first non-empty line of a text, safe to print. */
export const firstLine = (text: string): string =>
  escapeControls(text)
    .split('\n')
    .map((line) => line.trim())
    .find((line) => line !== '') ?? ''
