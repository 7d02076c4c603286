import type { AttemptDetails } from '../../../src/view/api.ts'

/** An attempt with its name in the address: its number, or `2.1` if another attempt has the same number. */
export interface NamedAttempt<Attempt = AttemptDetails> {
  readonly name: string
  readonly details: Attempt
}

/**
 * All attempts of a task, in order. Numbers may repeat, because a resumed run may repeat an attempt, and a lost worker
 * may answer late.
 */
export function namedAttempts<Attempt extends { readonly attempt: number; readonly startedAt: number }>(
  attempts: readonly Attempt[],
): NamedAttempt<Attempt>[] {
  const seen = new Map<number, number>()
  return attempts
    .toSorted((a, b) => a.startedAt - b.startedAt)
    .map((details) => {
      const before = seen.get(details.attempt) ?? 0
      seen.set(details.attempt, before + 1)
      return { name: before === 0 ? `${details.attempt}` : `${details.attempt}.${before}`, details }
    })
}

/** The attempt that the address names, or else the final one, or the latest. */
export function chosenAttempt(attempts: readonly NamedAttempt[], name: string | null): NamedAttempt | undefined {
  return (
    attempts.find((one) => one.name === name) ??
    attempts.find(({ details }) => details.role === 'final') ??
    attempts.at(-1)
  )
}
