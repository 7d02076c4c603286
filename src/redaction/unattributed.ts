import type { Redactor } from './redactor.ts'

/** Runs of a process nearly always have the same secrets. */
const MOST = 16

/** By what they look for; the most recent last. They outlive their runs, because workers do. */
const known = new Map<string, Redactor>()

/** From here on its secrets are taken out of what workers say outside of any task, too. */
export function rememberSecrets(redactor: Redactor): void {
  known.delete(redactor.key)
  known.set(redactor.key, redactor)
  if (known.size > MOST) known.delete(known.keys().next().value!)
}

/** A text that belongs to no task, and so to no run in particular: what a worker prints while it loads code, a stray error. */
export function withoutKnownSecrets(text: string): string {
  let clean = text
  for (const redactor of known.values()) clean = redactor.text(clean)
  return clean
}

/** What a worker has printed, as it may be shown. */
export function printableOutput(output: Buffer): Buffer | string {
  if (known.size === 0) return output
  const text = output.toString()
  const clean = withoutKnownSecrets(text)
  return clean === text ? output : clean
}
