/** The exit codes of commands that a signal ended: 128 + its number, as in shells. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const

/** Aborted by the first Ctrl-C or SIGTERM; `code` is then the exit code. */
export function stopSignal(): { readonly signal: AbortSignal; readonly code: () => number | undefined } {
  const stop = new AbortController()
  let code: number | undefined
  for (const [name, exitCode] of Object.entries(SIGNALS))
    process.once(name, () => {
      code = exitCode
      stop.abort()
    })
  return { signal: stop.signal, code: () => code }
}
