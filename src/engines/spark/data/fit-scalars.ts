import { fitDate, fitTimestamp, fitTimestampNtz } from './fit-times.ts'
import { base64 } from './json-text.ts'
import { isHuge, Misfit, shown } from './misfit.ts'

/**
 * Converts values to the JSON that Spark reads for a type. Spark would silently change some values that do not fit: 1e300 to
 * Infinity, a number to a time in seconds, -0 to 0. Here they are errors.
 */

export const SCALARS = {
  boolean: (value: unknown) => (typeof value === 'boolean' ? String(value) : refuse(value, 'boolean', 'true or false')),
  tinyint: integer('tinyint', 8),
  smallint: integer('smallint', 16),
  int: integer('int', 32),
  bigint: integer('bigint', 64),
  float: floating('float'),
  double: floating('double'),
  binary: (value: unknown) =>
    value instanceof Uint8Array ? `"${base64(value)}"` : refuse(value, 'binary', 'a Uint8Array'),
  date: (value: unknown) => JSON.stringify(fitDate(value)),
  timestamp: (value: unknown) => JSON.stringify(fitTimestamp(value)),
  timestamp_ntz: (value: unknown) => JSON.stringify(fitTimestampNtz(value)),
}

export function refuse(value: unknown, type: string, instead: string): never {
  throw new Misfit(`${shown(value)}, which ${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type} cannot hold; give ${instead}`)
}

function integer(name: string, bits: number) {
  const [least, most] = [-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n]
  return (value: unknown) => {
    const exact = typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value
    if (typeof exact === 'bigint' && exact >= least && exact <= most) return String(exact)
    return refuse(value, name, `a whole number from ${least} to ${most}`)
  }
}

/** A number is rounded to the nearest float, as usual, but a number that would become 0 or Infinity is an error. */
function floating(name: 'float' | 'double') {
  const nearest = name === 'float' ? Math.fround : (value: number) => value
  return (value: unknown) => {
    if (typeof value === 'bigint') {
      const number = isHuge(value) ? Number.NaN : nearest(Number(value))
      return Number.isFinite(number) && BigInt(number) === value
        ? String(number)
        : refuse(value, name, 'a number, or a column of type decimal or string')
    }
    if (typeof value !== 'number') return refuse(value, name, 'a number')
    if (!Number.isFinite(value)) return `"${value}"`
    const number = nearest(value)
    if (!Number.isFinite(number) || (number === 0 && value !== 0)) return refuse(value, name, 'a column of type double')
    return Object.is(number, -0) ? '-0.0' : String(number)
  }
}

const DECIMAL = /^([+-]?)(\d{1,400})(?:\.(\d{0,400}))?(?:e([+-]?\d{1,3}))?$/i

export function decimal(precision: number, scale: number) {
  const type = `decimal(${precision},${scale})`
  const instead = `text or a number with at most ${precision - scale} digits before the point and ${scale} after it`
  return (value: unknown) => {
    const isNumber =
      typeof value === 'string' || typeof value === 'number' || (typeof value === 'bigint' && !isHuge(value))
    const [, sign, whole = '', fraction = '', exponent = '0'] = isNumber ? (DECIMAL.exec(String(value)) ?? []) : []
    if (sign === undefined) return refuse(value, type, instead)
    // 12.50e-1: 1250 and an exponent of -3; without the zeros at both ends, 125 and -2.
    const digits = `${whole}${fraction}`.replace(/^0+/, '')
    const significant = digits.replace(/0+$/, '')
    if (significant === '') return '0'
    const power = Number(exponent) - fraction.length + (digits.length - significant.length)
    if (-power > scale || significant.length + power > precision - scale) return refuse(value, type, instead)
    return `${sign === '-' ? '-' : ''}${significant}e${power}`
  }
}
