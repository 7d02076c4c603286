const surviving = new WeakSet<object>()

/**
 * For streams to which progress is written: when whoever listened has gone (a closed pipe, a terminal that hung up),
 * the run goes on all the same.
 */
export function surviveErrors(stream: NodeJS.WritableStream): void {
  if (surviving.has(stream)) return
  surviving.add(stream)
  stream.on('error', () => {})
}
