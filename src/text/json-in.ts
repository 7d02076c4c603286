/** Longer texts are not read as JSON. */
export const JSON_CHARS = 1_000_000

/** The object or list that a text is as JSON; undefined if it is something else. */
export function jsonIn(text: string): object | undefined {
  if (text.length > JSON_CHARS || !/^\s*[[{]/.test(text)) return undefined
  try {
    return JSON.parse(text) as object
  } catch {
    return undefined
  }
}
