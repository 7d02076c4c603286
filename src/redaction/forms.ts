/** Values that are shorter are no secrets: `none`, `EMPTY`, `test`. */
export const LEAST_SECRET_CHARS = 8
/** What stands in the place of a secret. */
export const REDACTED = '[redacted]'
/** In bytes, whose number must not change, it is overwritten with asterisks. */
export const REDACTED_BYTE = 0x2a

/**
 * The texts in which a secret is recognized: itself; as JSON writes it, also in JSON inside of JSON; as `console.log` shows
 * it inside of an object; in a URL; and in base64, whatever stands before it there (`Bearer …`, `user:…`).
 */
export function formsOf(secret: string): string[] {
  const escaped = jsonEscaped(secret)
  const printed = [secret.replaceAll('\\', '\\\\'), secret.replaceAll('/', '\\/')]
  return [secret, escaped, jsonEscaped(escaped), ...printed, ...urlForms(secret), ...base64Forms(secret)]
}

/** A text as it stands between the quotes of JSON. */
export const jsonEscaped = (text: string): string => JSON.stringify(text).slice(1, -1)

function urlForms(secret: string): string[] {
  // Half of a surrogate pair has no form in a URL.
  if (!secret.isWellFormed()) return []
  const encoded = encodeURIComponent(secret)
  const inForms = new URLSearchParams([['', secret]]).toString().slice(1)
  return [encoded, encoded.replaceAll(/%../g, (code) => code.toLowerCase()), inForms]
}

/**
 * Three bytes are four characters, so there are three ways to write a text in the middle of others. At both ends a character may
 * depend on what stands beside it; those are left out.
 */
function base64Forms(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const forms: string[] = []
  for (let before = 0; before < 3; before++) {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    const form = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
    forms.push(form, form.replaceAll('+', '-').replaceAll('/', '_'))
  }
  return forms
}
