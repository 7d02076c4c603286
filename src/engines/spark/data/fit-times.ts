import { Misfit, shown } from './misfit.ts'

/** Dates and times, given as `Date` or as text. Text has more: microseconds, and dates without a time. */

const DAY_MS = 86_400_000
const TIME = /^([+-]?\d{4,6})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?)?$/

export function fitDate(value: unknown): string {
  if (value instanceof Date) {
    if (value.getTime() % DAY_MS === 0) return dayOf(value)
    throw misfit(value, 'date', "midnight UTC, or text such as '2024-02-29': a date has no time of day")
  }
  const found = parse(value)
  if (found === undefined || found.time !== undefined)
    throw misfit(value, 'date', "a Date at midnight UTC, or text such as '2024-02-29'")
  return found.day
}

export function fitTimestamp(value: unknown): string {
  if (value instanceof Date) return value.toISOString()
  const { day, time = '00:00:00', zone = 'Z' } = parse(value) ?? refuseTime(value, 'timestamp')
  return `${day}T${time}${zone}`
}

export function fitTimestampNtz(value: unknown): string {
  if (value instanceof Date) return value.toISOString().slice(0, -1)
  const { day, time = '00:00:00', zone = 'Z' } = parse(value) ?? refuseTime(value, 'timestamp_ntz')
  if (zone !== 'Z') throw misfit(value, 'timestamp_ntz', 'text without a time zone')
  return `${day}T${time}`
}

const dayOf = (date: Date): string => date.toISOString().split('T', 1)[0]!

function parse(value: unknown): { day: string; time?: string; zone?: string | undefined } | undefined {
  const [, year, month, date, hour, minute, second = '00', fraction = '', zone] =
    typeof value === 'string' ? (TIME.exec(value) ?? []) : []
  if (year === undefined) return undefined
  const its = new Date(0)
  its.setUTCFullYear(Number(year), Number(month) - 1, Number(date))
  // `Date` makes the 30th of February one of March.
  if (its.getUTCMonth() + 1 !== Number(month) || its.getUTCDate() !== Number(date)) return undefined
  const day = dayOf(its)
  if (hour === undefined) return { day }
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  if (zone !== undefined && zone !== 'Z' && !(Number(zone.slice(1, 3)) < 18 && Number(zone.slice(4)) < 60))
    return undefined
  // Spark stores no more than microseconds.
  if (Number(fraction.slice(6)) > 0) return undefined
  return { day, time: `${hour}:${minute}:${second}${fraction && `.${fraction.slice(0, 6)}`}`, zone }
}

function refuseTime(value: unknown, type: string): never {
  const example = `text such as '2024-02-29T12:30:00.123456${type === 'timestamp' ? 'Z' : ''}'`
  const meant = typeof value === 'number' ? ' (new Date(…) of the milliseconds)' : ''
  throw misfit(value, type, `a Date${meant}, or ${example}`)
}

const misfit = (value: unknown, type: string, instead: string) =>
  new Misfit(`${shown(value)}, which a ${type} cannot hold; give ${instead}`)
