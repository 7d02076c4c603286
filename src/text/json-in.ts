/** Longer texts are not parsed as JSON. */
export const JSON_CHARS = 1_000_000

/** Parses a text that is a JSON object or list; undefined if it is not. */
export function jsonIn(text: string): object | undefined {
  if (text.length > JSON_CHARS || !/^\s*[[{]/.test(text)) return undefined
  try {
    return JSON.parse(text) as object
  } catch {
    return undefined
  }
}
