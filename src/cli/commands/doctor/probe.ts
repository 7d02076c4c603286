import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'

/** On a busy machine, a JVM takes two seconds to print its version. A program that takes much longer hangs. */
const PROBE_MS = 10_000
const MOST_OUTPUT = 100_000

export type Probed = { readonly ok: true; readonly output: string } | { readonly ok: false; readonly problem: string }

const running = new Set<ChildProcess>()

/** Runs a program without a shell and returns its stdout and stderr. A program that hangs is killed. */
export function probe(program: string, args: readonly string[], ms = PROBE_MS): Promise<Probed> {
  return new Promise((done) => {
    // In its own process group: these programs are often scripts, and the process that hangs is a child of the script.
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    running.add(child)
    let output = ''
    const note = (text: string) => {
      if (output.length < MOST_OUTPUT) output += text
    }
    child.stdout.setEncoding('utf8').on('data', note)
    child.stderr.setEncoding('utf8').on('data', note)
    const timer = setTimeout(() => end({ ok: false, problem: `no answer within ${ms / 1000} s` }), ms)
    const end = (result: Probed) => {
      clearTimeout(timer)
      killGroup(child)
      running.delete(child)
      done(result)
    }
    child.once('error', (error) => end({ ok: false, problem: error.message }))
    child.once('close', (code, signal) =>
      end(code === 0 ? { ok: true, output } : { ok: false, problem: failure(code ?? signal, output) }),
    )
  })
}

const failure = (how: number | string | null, output: string) =>
  `failed (${how})${output.trim() === '' ? '' : `: ${output.trim().split('\n').at(-1)}`}`

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // The process group has already ended.
  }
}

/** Ctrl-C does not reach other process groups, so it is passed on. */
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => {
    for (const child of running) killGroup(child)
    process.exit(128 + constants.signals[signal])
  })
