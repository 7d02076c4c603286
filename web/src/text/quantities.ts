const number = new Intl.NumberFormat('en-US')
const significant = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 4 })
const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 })

/** `12,345` */
export const count = (value: number): string => number.format(value)

/** `12.3K` */
export const shortCount = (value: number): string => (Math.abs(value) < 10_000 ? count(value) : short.format(value))

/** `1 task`, `2 tasks` */
export const counted = (value: number, noun: string): string => `${count(value)} ${noun}${value === 1 ? '' : 's'}`

/** `0.4 ms`, `120 ms`, `1.5 s`, `2 min 5 s`, `3 h 10 min` */
export function duration(ms: number): string {
  if (ms < 10) return `${Number(ms.toPrecision(2))} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  const s = ms / 1000
  if (s < 10) return `${s.toFixed(1)} s`
  if (s < 60) return `${Math.round(s)} s`
  const whole = Math.round(s)
  if (whole < 3600) return `${Math.floor(whole / 60)} min${whole % 60 === 0 ? '' : ` ${whole % 60} s`}`
  const minutes = Math.round(whole / 60)
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h${minutes % 60 === 0 ? '' : ` ${minutes % 60} min`}`
  return `${Math.floor(minutes / 1440)} d ${Math.round((minutes % 1440) / 60)} h`
}

/** `$0.0012`, `$1.20` */
export const dollars = (value: number): string =>
  value === 0 ? '$0' : value < 0.01 ? `$${value.toPrecision(2)}` : `$${value.toFixed(2)}`

/** `93.2 %` of a share */
export const percent = (share: number): string => `${(100 * share).toFixed(share === 0 || share === 1 ? 0 : 1)} %`

/** `0.123`, `1.2e-7`, `1,234` */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return String(value)
  const size = Math.abs(value)
  if (value === 0 || (size >= 1e-4 && size < 1e6)) return significant.format(value)
  return value.toExponential(2)
}

/** `1.2 MB` */
export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let unit = 0
  let left = value
  while (left >= 1000 && unit < units.length - 1) {
    left /= 1000
    unit++
  }
  return `${unit === 0 ? left : left.toPrecision(3)} ${units[unit]}`
}

const moment = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' })

/** `2026-11-17 18:02:11`, in the time zone of the reader */
export const dateTime = (at: number): string => moment.format(at)

/** `12 s ago` */
export const ago = (at: number, now = Date.now()): string => `${duration(Math.max(0, now - at))} ago`
