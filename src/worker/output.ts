import type { TaskContext } from './context.ts'

/** A stream that programs print to. */
interface Printed {
  write(...args: unknown[]): boolean
}

/**
 * Attributes printed text to its task. Patching the two streams instead of `console` catches everything written from
 * JavaScript. Text printed outside of any task goes to the process's own stdout and stderr. Returns a function that undoes it.
 */
export function keepOutputWithTasks(
  current: () => TaskContext | undefined,
  streams: Iterable<object> = [process.stdout, process.stderr],
): () => void {
  const undo = [...streams].map((stream) => keepWrites(stream as Printed, current))
  return () => {
    for (const one of undo) one()
  }
}

function keepWrites(stream: Printed, current: () => TaskContext | undefined): () => void {
  const own = Object.getOwnPropertyDescriptor(stream, 'write')
  const original = stream.write.bind(stream)
  const write = (chunk: unknown, ...rest: unknown[]): boolean => {
    const task = current()
    if (task === undefined || task.settled) return original(chunk, ...rest)
    const encoding = typeof rest[0] === 'string' ? (rest[0] as BufferEncoding) : 'utf8'
    const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk as Uint8Array).toString(encoding)
    task.print(text.endsWith('\n') ? text.slice(0, -1) : text)
    const callback = rest.at(-1)
    if (typeof callback === 'function') process.nextTick(callback as () => void)
    return true
  }
  stream.write = write
  return () => {
    // If other code patched the stream after us, our function stays below theirs, and only passes text on.
    if (stream.write !== write) return
    if (own) Object.defineProperty(stream, 'write', own)
    else delete (stream as { write?: unknown }).write
  }
}
