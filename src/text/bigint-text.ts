/** The decimal digits of more bits than these take long to find: of 30 million, seconds. */
const DECIMAL_BITS = 2 ** 20

/** A bigint as text: decimal or, where that would take long, hexadecimal. */
export function bigintText(value: bigint): string {
  if (BigInt.asIntN(DECIMAL_BITS, value) === value) return value.toString()
  return value < 0n ? `-0x${(-value).toString(16)}` : `0x${value.toString(16)}`
}
