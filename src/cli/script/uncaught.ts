/**
 * Rejects with the first error that nothing catches, such as that of an async main() that is not awaited: it is reported like an
 * error that the script throws. A script with a listener of its own decides itself.
 */
export function uncaughtError(): Promise<never> {
  const uncaught = new Promise<never>((_, reject) => {
    process.on('uncaughtException', (error) => {
      if (process.listenerCount('uncaughtException') === 1) reject(error)
    })
  })
  // Nothing may be waiting for it at that moment.
  uncaught.catch(() => {})
  return uncaught
}

/** Does the work of a command that imports a file of the user's, until an error that nothing catches. */
export const orUncaught = <Result>(work: Promise<Result>): Promise<Result> => Promise.race([work, uncaughtError()])
