import { type ChildProcess, spawn } from 'node:child_process'
import { onTestFinished } from 'vitest'
import { type Daemon, type DaemonOptions, startNode } from '../nodes/daemon.ts'
import { MAIN } from './manyworlds.ts'

export interface Background {
  readonly child: ChildProcess
  /** What it has printed so far, on stdout and on stderr. */
  output(): string
  stdout(): string
  /** The exit code, or the signal, when all that it printed has arrived. */
  readonly exited: Promise<number | string | null>
}

/** Starts `manyworlds` with these words, and does not wait for its end. */
export function inBackground(
  words: readonly string[],
  { cwd, env = {} }: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
  /** It leads a process group of its own. */
  detached = false,
): Background {
  const child = spawn(process.execPath, [MAIN, ...words], { cwd, env: { ...process.env, ...env }, detached })
  let [output, stdout] = ['', '']
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    stdout += text
  })
  const exited = new Promise<number | string | null>((resolve) =>
    child.once('close', (code, signal) => resolve(signal ?? code)),
  )
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  return { child, output: () => output, stdout: () => stdout, exited }
}

/** A node for one test. */
export async function nodeForTest(options: DaemonOptions = {}): Promise<Daemon> {
  const node = await startNode(options)
  onTestFinished(() => node.kill())
  return node
}
