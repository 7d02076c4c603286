/** A mistake in what was typed. It is shown as one line with a hint where to read on, and the exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
