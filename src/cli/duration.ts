import { UsageError } from './usage-error.ts'

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Milliseconds of `500ms`, `30s`, `2m`, `1.5h`, `1h30m` or `7d`. `label` says where it stood: `--timeout`. */
export function parseDuration(text: string, label: string): number {
  const parts = [...text.matchAll(/(\d{1,15}(?:\.\d{1,15})?)(ms|[smhd])/g)]
  if (text === '' || parts.map(([part]) => part).join('') !== text) {
    const guess = /^\d+(\.\d+)?$/.test(text) ? `; ${text} of what? "${text}s" or "${text}ms"?` : ''
    throw new UsageError(`${label}: "${text}" is not a duration such as 30s, 2m, 500ms or 1h30m${guess}`)
  }
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS], 0)
}
