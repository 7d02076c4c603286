type Write = NodeJS.WriteStream['write']

/** Called instead of a write. It must call `write` and return its result. */
export type AroundWrite = (chunk: string | Uint8Array, write: () => boolean) => boolean

/** Passes all writes to the stream through `around`. Returns a function that ends this. */
export function interceptWrites(stream: NodeJS.WriteStream, around: AroundWrite): () => void {
  const own = Object.getOwnPropertyDescriptor(stream, 'write')
  const original = stream.write
  let active = true
  const write = ((...args: Parameters<Write>) =>
    active ? around(args[0], () => original.apply(stream, args)) : original.apply(stream, args)) as Write
  stream.write = write
  return () => {
    active = false
    // If other code has wrapped `write` in the meantime, our wrapper stays and only passes writes on.
    if (stream.write !== write) return
    if (own) Object.defineProperty(stream, 'write', own)
    else delete (stream as { write?: unknown }).write
  }
}
