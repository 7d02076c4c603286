/**
 * Hashes of features: 32 bits, by whole numbers only. Weights are found by them, so they may never change; another way of hashing gets
 * another number.
 */
export const HASHING = 1

/** FNV-1a over the UTF-16 code units of a text, going on from an earlier hash. */
export function hashText(text: string, from = 0x811c9dc5): number {
  let hash = from
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

/** Of two hashes in this order, so that pairs of words need no text of their own. */
export const hashPair = (a: number, b: number): number => scramble(Math.imul(scramble(a) ^ 0x9e3779b9, 0x85ebca6b) ^ b)

/** The last step of MurmurHash3: every bit of the result depends on every bit of the hash. */
export function scramble(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
