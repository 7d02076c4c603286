import type { AttemptDetails } from '../../../src/view/api.ts'

/** An attempt with the name that it has in the address: its number, and `2.1` for the second with the same number. */
export interface NamedAttempt<Attempt = AttemptDetails> {
  readonly name: string
  readonly details: Attempt
}

/** All attempts of a task, in order. Numbers repeat: a run that was resumed may have tried again, and a lost worker may have answered late. */
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
