const surviving = new WeakSet<object>()

/**
 * For streams that progress is written to: if the reader goes away (a closed pipe, a terminal that hung up), the run must
 * go on.
 */
export function surviveErrors(stream: NodeJS.WritableStream): void {
  if (surviving.has(stream)) return
  surviving.add(stream)
  stream.on('error', () => {})
}
