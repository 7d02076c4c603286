import type { TaskContext } from './context.ts'

/**
 * What a task prints belongs to that task. Patching the two streams, rather than `console`, catches everything that is
 * written from JavaScript; what is printed outside of any task goes to the process's own stdout and stderr as ever.
 */
export function keepOutputWithTasks(current: () => TaskContext | undefined): void {
  for (const stream of [process.stdout, process.stderr]) {
    const original = stream.write.bind(stream) as (...args: unknown[]) => boolean
    stream.write = ((chunk: unknown, ...rest: unknown[]) => {
      const task = current()
      if (task === undefined || task.settled) return original(chunk, ...rest)
      const encoding = typeof rest[0] === 'string' ? (rest[0] as BufferEncoding) : 'utf8'
      const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk as Uint8Array).toString(encoding)
      task.print(text.endsWith('\n') ? text.slice(0, -1) : text)
      const callback = rest.at(-1)
      if (typeof callback === 'function') process.nextTick(callback as () => void)
      return true
    }) as typeof stream.write
  }
}
