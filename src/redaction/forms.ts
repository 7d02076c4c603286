/** Shorter values are not treated as secrets: `none`, `EMPTY`, `test`. */
export const LEAST_SECRET_CHARS = 8
/** The replacement of a secret. */
export const REDACTED = '[redacted]'
/** In bytes, whose length must not change, a secret is overwritten with asterisks. */
export const REDACTED_BYTE = 0x2a

/**
 * The forms in which a secret is recognized: as it is; escaped as in JSON, and as in JSON inside JSON; as `console.log` prints
 * it inside an object; URL-encoded; and in base64, whatever comes before it there (`Bearer …`, `user:…`).
 */
export function formsOf(secret: string): string[] {
  const escaped = jsonEscaped(secret)
  const printed = [secret.replaceAll('\\', '\\\\'), secret.replaceAll('/', '\\/')]
  return [secret, escaped, jsonEscaped(escaped), ...printed, ...urlForms(secret), ...base64Forms(secret)]
}

/** The text as it appears between the quotes of JSON. */
export const jsonEscaped = (text: string): string => JSON.stringify(text).slice(1, -1)

function urlForms(secret: string): string[] {
  // A lone surrogate cannot be encoded in a URL.
  if (!secret.isWellFormed()) return []
  const encoded = encodeURIComponent(secret)
  const inForms = new URLSearchParams([['', secret]]).toString().slice(1)
  return [encoded, encoded.replaceAll(/%../g, (code) => code.toLowerCase()), inForms]
}

/**
 * Three bytes become four characters, so a text in the middle of others can be encoded in three ways. Characters at both ends
 * may depend on the neighboring bytes; they are left out.
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
