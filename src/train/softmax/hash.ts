/**
 * The version of the feature hashes: 32 bits, computed with integers only. They determine which weight a feature has,
 * so they must never change; another hash function gets another number.
 */
export const HASHING = 1

/** FNV-1a over the UTF-16 code units of a text, continuing from an earlier hash. */
export function hashText(text: string, from = 0x811c9dc5): number {
  let hash = from
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

/** The hash of an ordered pair, so that pairs of features need no combined text. */
export const hashPair = (a: number, b: number): number => scramble(Math.imul(scramble(a) ^ 0x9e3779b9, 0x85ebca6b) ^ b)

/** The finalizer of MurmurHash3: every bit of the result depends on every bit of the hash. */
export function scramble(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
