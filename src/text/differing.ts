import { jsonPreview } from './json.ts'

/** Longer texts are compared only up to here. */
const MAX_COMPARED = 500_000
/** Characters shown before the first difference. */
const BEFORE = 30

/** Two values as JSON of at most about `chars` characters each, cut so that both contain the first difference. */
export function differing(was: unknown, now: unknown, chars = 80): [was: string, now: string] {
  const texts = [was, now].map((value) => jsonPreview(value, MAX_COMPARED).text) as [string, string]
  const [a, b] = texts
  if (a.length <= chars && b.length <= chars) return texts
  let first = 0
  while (first < a.length && a[first] === b[first]) first++
  const start = first <= BEFORE || Math.max(a.length, b.length) <= chars ? 0 : first - BEFORE
  return texts.map((text) => {
    const part = text.slice(start, start + chars)
    return `${start > 0 ? '…' : ''}${part}${start + chars < text.length ? '…' : ''}`
  }) as [string, string]
}
