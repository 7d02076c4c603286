import type { Redactor } from './redactor.ts'

/** The runs of a process nearly always have the same secrets, so a few redactors are enough. */
const MOST = 16

/** Redactors by key, the most recent last. They outlive their runs, because workers do. */
const known = new Map<string, Redactor>()

/** Makes the secrets of a run known, so that they are also removed from output of workers outside any task. */
export function rememberSecrets(redactor: Redactor): void {
  known.delete(redactor.key)
  known.set(redactor.key, redactor)
  if (known.size > MOST) known.delete(known.keys().next().value!)
}

/**
 * Removes all known secrets from a text that belongs to no task, and so to no specific run, such as output while loading
 * code.
 */
export function withoutKnownSecrets(text: string): string {
  let clean = text
  for (const redactor of known.values()) clean = redactor.text(clean)
  return clean
}
