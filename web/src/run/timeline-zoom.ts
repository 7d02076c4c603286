/** A part of the time. */
export interface Span {
  readonly from: number
  readonly to: number
}

const SHORTEST_MS = 5

/** Zooms a span by the factor `times` around a moment. The result stays within the whole. */
export function zoomed(span: Span, whole: Span, times: number, around = (span.from + span.to) / 2): Span | never {
  const all = whole.to - whole.from
  const length = Math.min(all, Math.max(SHORTEST_MS, (span.to - span.from) / times))
  const share = (around - span.from) / Math.max(1e-9, span.to - span.from)
  const from = Math.max(whole.from, Math.min(whole.to - length, around - share * length))
  return { from, to: from + length }
}
