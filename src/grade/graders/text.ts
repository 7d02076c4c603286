import { oneLine } from '../../text/escape-controls.ts'

/** An answer as text. Undefined for objects: use `json` for those. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint'
    ? String(value)
    : undefined
}

const MAX_SHOWN = 120

/** A value for a message, short and on one line. */
export function shown(value: unknown): string {
  if (typeof value !== 'string')
    return textOf(value) ?? (value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value)
  const text = value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value
  return `"${oneLine(text)}"`
}
