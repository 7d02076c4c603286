import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** A server in a process of its own, which ends when this process ends, however that is. */
export interface ServerProcess {
  /** `http://127.0.0.1:38941` */
  readonly url: string
  readonly pid: number
  close(): Promise<void>
}

const END_MS = 5000
const OUTPUT_CHARS = 4000

/**
 * Starts a program that prints its address as its first line, and ends at the end of its standard input: the kernel closes that
 * pipe also when this process is killed. The program does not keep this process alive.
 */
export async function startServerProcess(
  title: string,
  command: string,
  args: readonly string[],
  startMs: number,
): Promise<ServerProcess> {
  const child = spawn(command, args, { stdio: 'pipe' })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-OUTPUT_CHARS)
  })
  child.stdin.on('error', () => {
    // It ended before we closed the pipe.
  })
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
  })
  const lines = createInterface({ input: child.stdout })
  const timer = setTimeout(() => child.kill('SIGKILL'), startMs)
  const first = await Promise.race([once(lines, 'line') as Promise<[string]>, ended])
  clearTimeout(timer)
  if (typeof first === 'string') throw new Error(`${title} did not come up within ${startMs} ms: ${first}\n${errors}`)
  for (const part of [child, child.stdin, child.stdout, child.stderr]) (part as { unref?(): void }).unref?.()

  return {
    url: first[0],
    pid: child.pid!,
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.ref()
      child.stdin.end()
      const late = setTimeout(() => child.kill('SIGKILL'), END_MS)
      await ended
      clearTimeout(late)
    },
  }
}
