const surviving = new WeakSet<object>()

/**
 * Ignores errors of a stream that progress is written to: if its reader goes away (a closed pipe, a closed terminal), the
 * run must continue.
 */
export function surviveErrors(stream: NodeJS.WritableStream): void {
  if (surviving.has(stream)) return
  surviving.add(stream)
  stream.on('error', () => {})
}
