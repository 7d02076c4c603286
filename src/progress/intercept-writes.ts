type Write = NodeJS.WriteStream['write']

/** What is done around a write: it has to call `write` and to return what that returns. */
export type AroundWrite = (chunk: string | Uint8Array, write: () => boolean) => boolean

/** From now on all that is written to the stream goes through `around`; returns what ends that. */
export function interceptWrites(stream: NodeJS.WriteStream, around: AroundWrite): () => void {
  const own = Object.getOwnPropertyDescriptor(stream, 'write')
  const original = stream.write
  let active = true
  const write = ((...args: Parameters<Write>) =>
    active ? around(args[0], () => original.apply(stream, args)) : original.apply(stream, args)) as Write
  stream.write = write
  return () => {
    active = false
    // If somebody else has wrapped `write` since, ours stays and only passes writes on.
    if (stream.write !== write) return
    if (own) Object.defineProperty(stream, 'write', own)
    else delete (stream as { write?: unknown }).write
  }
}
