import type { Usage } from '../trajectory/usage.ts'

const INTEGER = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
const SECOND_MS = 1000
const DAY_S = 86_400

/** `1,234` */
export const count = (value: number): string => INTEGER.format(value)

/** `1 task`, `1,234 tasks` */
export const counted = (value: number, noun: string): string => `${count(value)} ${noun}${value === 1 ? '' : 's'}`

/** A percentage that is never 100 before everything is done. */
export const percent = (part: number, whole: number): string =>
  `${whole === 0 ? 100 : Math.floor((100 * part) / whole)}%`

/** A rounded percentage, with one decimal if it is not whole. It is 100 only if nothing is missing, and 0 only if nothing is there. */
export function precisePercent(part: number, whole: number): string {
  const rounded = Math.round((1000 * part) / whole)
  const tenths = part === whole ? 1000 : part === 0 ? 0 : Math.min(999, Math.max(1, rounded))
  return `${tenths % 10 === 0 ? tenths / 10 : (tenths / 10).toFixed(1)}%`
}

/** `0:09`, `12:34`, `1:02:03`, `2 d 03:04:05` */
export function clock(ms: number): string {
  const seconds = Math.round(ms / SECOND_MS)
  const [days, rest] = [Math.floor(seconds / DAY_S), seconds % DAY_S]
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0')
  const minutesOn = `${two((rest % 3600) / 60)}:${two(rest % 60)}`
  if (days > 0) return `${days} d ${two(rest / 3600)}:${minutesOn}`
  return rest >= 3600 ? `${Math.floor(rest / 3600)}:${minutesOn}` : minutesOn.replace(/^0(?=\d:)/, '')
}

/** `0.4 ms`, `120 ms`, `1.2 s`, `2:05 min`, `1:02:03 h`. Thresholds consider rounding, so that it never returns `1000 ms`. */
export function duration(ms: number): string {
  if (ms < 9.95) return `${ms.toFixed(1).replace('.0', '')} ms`
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / SECOND_MS).toFixed(1)} s`
  return ms < 3_599_500 ? `${clock(ms)} min` : ms < DAY_S * SECOND_MS - 500 ? `${clock(ms)} h` : clock(ms)
}

/** `412/s`, `3.4/s`, `12/min`, `2.5/h` */
export function rate(perSecond: number): string {
  const per = (value: number, unit: string) => `${value < 9.95 ? value.toFixed(1) : count(value)}/${unit}`
  if (perSecond === 0 || perSecond >= 1) return per(perSecond, 's')
  return perSecond * 60 >= 1 ? per(perSecond * 60, 'min') : per(perSecond * 3600, 'h')
}

/** `512 B`, `12 kB`, `3.4 MB` */
export function bytes(size: number): string {
  if (size < 1000) return `${size} B`
  let [value, unit] = [size, 0]
  for (; value >= 999.5 && unit < 4; unit++) value /= 1000
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${['B', 'kB', 'MB', 'GB', 'TB'][unit]}`
}

/**
 * `1,234 tokens in (1,000 cached), 56 out, $0.12`; empty if nothing was reported. Values that are not numbers are
 * ignored, because agents may record anything.
 */
export function usageText(usage: Usage): string {
  const number = (value: unknown) => (typeof value === 'number' ? value : undefined)
  const [inputTokens, outputTokens] = [number(usage?.inputTokens), number(usage?.outputTokens)]
  const [cachedTokens, costUsd] = [number(usage?.cachedTokens), number(usage?.costUsd)]
  const cached = cachedTokens === undefined ? '' : `${count(cachedTokens)} cached`
  const parts = [
    inputTokens === undefined ? cached : `${count(inputTokens)} tokens in${cached && ` (${cached})`}`,
    outputTokens === undefined ? '' : `${count(outputTokens)} ${inputTokens === undefined ? 'tokens out' : 'out'}`,
    costUsd === undefined ? '' : dollars(costUsd),
  ]
  return parts.filter((part) => part !== '').join(', ')
}

/** `$1.25`, `$0.0123`, `$0.00003`: a call of a small model costs less than a hundredth of a cent. */
function dollars(cost: number): string {
  if (cost === 0 || cost >= 0.1) return `$${cost.toFixed(2)}`
  if (cost >= 0.001 || cost < 0) return `$${cost.toFixed(4)}`
  return cost < 0.000001 ? 'less than $0.000001' : `$${cost.toFixed(6).replace(/0+$/, '')}`
}
