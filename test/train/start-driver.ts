import { type ChildProcess, spawn } from 'node:child_process'
import { onTestFinished } from 'vitest'

/** A program that trains and prints lines of JSON. It ends with its test. */
export interface Driver<Line> {
  readonly child: ChildProcess & { readonly stdout: NonNullable<ChildProcess['stdout']> }
  /** Its exit code, or the signal that ended it. */
  readonly exited: Promise<number | string | null>
  lines(): Line[]
  stderr(): string
}

export function startDriver<Line>(args: readonly string[], env: NodeJS.ProcessEnv = process.env): Driver<Line> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const exited = new Promise<number | string | null>((resolve) =>
    child.once('close', (code, signal) => resolve(signal ?? code)),
  )
  const lines = () =>
    stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line)
  return { child, exited, lines, stderr: () => stderr }
}
