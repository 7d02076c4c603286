import { types } from 'node:util'

/**
 * Deep equality of deserialized values in linear time. (`isDeepStrictEqual` is quadratic for Sets of objects.) Members of
 * Sets and Maps must be in the same order.
 */
export function isSameValue(one: unknown, other: unknown, compared = new Map<object, object>()): boolean {
  if (Object.is(one, other)) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  // The pair is part of a cycle or was compared before. If it was unequal, the whole comparison has already failed.
  if (compared.has(one)) return compared.get(one) === other
  compared.set(one, other)
  const same = (a: unknown, b: unknown) => isSameValue(a, b, compared)
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false
  if (types.isMap(one) && types.isMap(other)) return one.size === other.size && sameMembers(one, other, same)
  if (types.isSet(one) && types.isSet(other)) return one.size === other.size && sameMembers(one, other, same)
  if (types.isAnyArrayBuffer(one) || ArrayBuffer.isView(one)) return bytesOf(one).equals(bytesOf(other as typeof one))
  if (types.isDate(one) || types.isBoxedPrimitive(one)) return Object.is(one.valueOf(), other.valueOf())
  if (types.isRegExp(one)) return String(one) === String(other)
  if (types.isNativeError(one) && types.isNativeError(other))
    return one.message === other.message && same(one.cause, other.cause) && sameFields(one, other, same)
  if (Array.isArray(one)) return Array.isArray(other) && one.length === other.length && sameFields(one, other, same)
  return sameFields(one, other, same)
}

function sameMembers(
  one: Iterable<unknown>,
  other: Iterable<unknown>,
  same: (a: unknown, b: unknown) => boolean,
): boolean {
  const others = other[Symbol.iterator]()
  for (const member of one) if (!same(member, others.next().value)) return false
  return true
}

function sameFields(one: object, other: object, same: (a: unknown, b: unknown) => boolean): boolean {
  const keys = Object.keys(one)
  if (keys.length !== Object.keys(other).length) return false
  for (const key of keys) if (!Object.hasOwn(other, key) || !same(one[key as never], other[key as never])) return false
  return true
}

const bytesOf = (value: ArrayBufferLike | ArrayBufferView): Buffer =>
  ArrayBuffer.isView(value)
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    : Buffer.from(value as ArrayBuffer)
