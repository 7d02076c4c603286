import { lastKeys, scanV8 } from './scan-v8.ts'

/**
 * The keys of objects and the entries of Maps and Sets that an answer or a request of a task may have in all. The driver reads
 * it at once, and a million takes up to a second; nothing else of the driver runs meanwhile.
 */
const MAX_ANSWER_KEYS = 1_000_000
/** The shortest key with its value, `"":0,`. */
const LEAST_KEY_CHARS = 5
const COLON = ':'.charCodeAt(0)
const BACKSLASH = '\\'.charCodeAt(0)
const SPACE = ' '.charCodeAt(0)

/** Undefined if the driver may read this packed value, else why not. */
export function whyTooManyKeys(packed: unknown, most: number = MAX_ANSWER_KEYS): string | undefined {
  const keys = packed instanceof String ? keysOfJson(packed.valueOf(), most) : keysOfBytes(packed, most)
  return keys <= most
    ? undefined
    : `it has ${keys} keys and entries, and at most ${most} can be sent; send it as text or bytes, or write it to a file and send the path`
}

function keysOfBytes(packed: unknown, most: number): number {
  if (!(packed instanceof Uint8Array) || packed.byteLength <= most) return 0
  // Bytes that cannot be read have no keys, and are refused as such.
  return scanV8(packed) === undefined ? lastKeys() : 0
}

/** Texts that a colon follows. */
function keysOfJson(json: string, most: number): number {
  if (json.length <= most * LEAST_KEY_CHARS) return 0
  let keys = 0
  for (let at = json.indexOf('"'); at >= 0; at = json.indexOf('"', at)) {
    at = afterText(json, at)
    while (json.charCodeAt(at) <= SPACE) at++
    if (json.charCodeAt(at) === COLON) keys++
  }
  return keys
}

function afterText(json: string, from: number): number {
  for (let at = json.indexOf('"', from + 1); at >= 0; at = json.indexOf('"', at + 1)) {
    let escapes = 0
    while (json.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes++
    if (escapes % 2 === 0) return at + 1
  }
  return json.length
}
