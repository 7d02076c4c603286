/** A mistake on the command line. It is printed as one line with a pointer to the help page; the exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
