/** Longer bigints are not converted to decimal, which is slow: 30 million bits take seconds. */
const DECIMAL_BITS = 2 ** 20

/** A bigint as text: decimal or, if it is very long, hexadecimal. */
export function bigintText(value: bigint): string {
  if (BigInt.asIntN(DECIMAL_BITS, value) === value) return value.toString()
  return value < 0n ? `-0x${(-value).toString(16)}` : `0x${value.toString(16)}`
}
