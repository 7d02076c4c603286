import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
// A CommonJS module whose names Node cannot see from outside.
import xterm from '@xterm/headless'
import { onTestFinished } from 'vitest'

const PYTHON = 'python3'
const POLL_MS = 20
const WAIT_MS = 40_000

interface Options {
  readonly cols?: number
  readonly rows?: number
  readonly cwd?: string
  /** More variables, besides those of a person at a terminal. */
  readonly env?: NodeJS.ProcessEnv
}

/** A program in a real pseudo-terminal, with an emulator that knows what a person would see on it. */
export interface TestTerminal {
  /** Until this is on the screen or in what was scrolled away or written over; fails with the screen if it never is. */
  waitFor(pattern: RegExp, timeoutMs?: number): Promise<void>
  /** Types. */
  write(text: string): void
  ctrlC(): void
  resize(cols: number, rows: number): void
  /** What is to be seen now, line by line, without blanks at the ends. */
  screen(): string[]
  /** Everything that was written so far, control characters and all. */
  raw(): string
  /** The exit code; 128 + n if signal n ended the program. */
  readonly exit: Promise<number>
}

/**
 * For `describe.skipIf`: pseudo-terminals need Python, of which only the standard library is used. Where it is missing
 * tests are skipped with a warning; in CI that is an error, so that nobody believes they ran.
 */
export function noTerminals(): boolean {
  if (spawnSync(PYTHON, ['-c', 'import pty, sys; sys.exit(sys.version_info < (3, 9))']).status === 0) return false
  const problem = 'tests in a terminal need python3 (3.9 or newer) on the PATH'
  if (process.env.CI === 'true') throw new Error(problem)
  process.stderr.write(`\n*** SKIPPED: ${problem} ***\n\n`)
  return true
}

/** Starts a program in a terminal of its own. It and all of its session are killed when the test is over. */
export function openTerminal(command: string, args: readonly string[], options: Options = {}): TestTerminal {
  const { cols = 80, rows = 24, cwd = process.cwd(), env = {} } = options
  const emulator = new xterm.Terminal({ cols, rows, allowProposedApi: true })
  // -I: isolated, or the line `import pty` in pty.py would find that file itself.
  const host = spawn(PYTHON, ['-I', join(import.meta.dirname, 'pty.py'), `${cols}`, `${rows}`, command, ...args], {
    cwd,
    env: { ...usersEnvironment(), TERM: 'xterm-256color', ...env },
  })
  let written = ''
  let ended = false
  // The emulator works in its own time; `written` grows when it has caught up, so that both always tell the same story.
  const decoder = new TextDecoder()
  const shown = (bytes: Uint8Array) =>
    new Promise<void>((done) =>
      emulator.write(bytes, () => {
        written += decoder.decode(bytes, { stream: true })
        done()
      }),
    )
  host.stdout.on('data', shown)
  host.stderr.on('data', shown)
  // Orders to a program that has just ended have no one to go to.
  host.stdin.on('error', () => {})
  const order = (what: object) => void host.stdin.write(`${JSON.stringify(what)}\n`)
  // Programs ask a terminal where its cursor is, or what it can do.
  emulator.onData((answer) => order({ write: answer }))
  const exit = new Promise<number>((done, failed) => {
    host.once('error', failed)
    host.once('close', async (code) => {
      await shown(new Uint8Array())
      ended = true
      done(code ?? 1)
    })
  })
  onTestFinished(async () => {
    host.stdin.end()
    await exit
    emulator.dispose()
  })

  const lines = (from: number) =>
    Array.from({ length: emulator.buffer.active.length - from }, (_, line) =>
      emulator.buffer.active.getLine(from + line)!.translateToString(true),
    )
  return {
    async waitFor(pattern, timeoutMs = WAIT_MS) {
      const seen = () => pattern.test(lines(0).join('\n')) || pattern.test(written)
      for (const until = Date.now() + timeoutMs; !seen(); await sleep(POLL_MS))
        if (ended || Date.now() > until)
          throw new Error(
            `${ended ? 'the program ended' : `${timeoutMs} ms passed`} without ${pattern}; the screen:\n${lines(0).join('\n').trimEnd()}`,
          )
    },
    write: (text) => order({ write: text }),
    ctrlC: () => order({ write: '\u0003' }),
    resize(newCols, newRows) {
      emulator.resize(newCols, newRows)
      order({ resize: [newCols, newRows] })
    },
    screen: () => lines(emulator.buffer.active.baseY),
    raw: () => written,
    exit,
  }
}

/** Without what the test runner and CI have put there: programs would behave as if nobody were looking. */
const usersEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(VITEST|VITE_|NODE_|TEST$|JEST_|CI$|(NO|FORCE)_COLOR)/.test(name),
    ),
  )
