import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { stderrTail } from '../../stderr-tail.ts'
import { AnswerLines } from './answer-lines.ts'
import { ExecutionMark } from './execution-mark.ts'
import { outsideTasks } from './outside-tasks.ts'

/** Reading a large package from a cold disk takes long. */
const START_MS = 120_000
/** Processes that a world has started may keep the output pipe open after Python has exited. */
const DRAIN_MS = 1000
/** The longest interval between two checks for hanging requests. There are at least four checks within a time limit. */
const LOOK_MS = 500

const DEFAULT_ENV = {
  // It determines the order of sets of strings. A fixed value makes worlds with the same seed equal on every machine.
  PYTHONHASHSEED: '0',
  PYTHONWARNINGS: 'ignore',
  // Each worker has its own process, and there are as many workers as cores.
  OMP_NUM_THREADS: '1',
  OPENBLAS_NUM_THREADS: '1',
}

export type Operation = 'reset' | 'step' | 'describe' | 'entries'

/** How to start it. */
export interface PythonCommand {
  readonly python: string
  readonly script: string
  readonly args: readonly string[]
}

/** How a Python process ended. */
export interface ProgramEnd {
  /** "exited with code 1", "was killed by SIGSEGV", "was killed because …" */
  readonly how: string
  readonly stderr: string
  /** The number of the request that was executing; 0 if there was none. */
  readonly executing: number
  /** Whether it was killed because that request took too long. */
  readonly hung: boolean
}

/** The process ended before it answered a request. */
export class ProgramEnded extends Error {
  readonly end: ProgramEnd
  /** Whether this request was executing when the process ended. */
  readonly wasExecuting: boolean

  constructor(end: ProgramEnd, wasExecuting: boolean) {
    super(`the Python process ${end.how}`)
    this.end = end
    this.wasExecuting = wasExecuting
  }
}

/** Why we killed the process. `culprit`: the request that caused it, if it is not the one that was executing. */
type KillReason = Pick<ProgramEnd, 'how' | 'hung'> & { readonly culprit?: number }

interface Pending {
  readonly limitMs: number
  resolve(text: string): void
  reject(error: ProgramEnded): void
}

/** A Python process that serves worlds (python/world_server.py). It exits with this process, however that ends. */
export class PythonProgram {
  /** Set when the process has ended. */
  end: ProgramEnd | undefined
  readonly #child: ChildProcess
  readonly #mark: ExecutionMark
  readonly #pending = new Map<number, Pending>()
  #numbers = 0
  #lines = ''
  readonly #stderr: () => string
  #looking: NodeJS.Timeout | undefined
  #answers = 0
  /** What the last check saw, and for how long the checks have seen the same. */
  #seen = { executing: 0, answers: 0, ms: 0 }
  #killed: KillReason | undefined

  private constructor({ python, script, args }: PythonCommand, ready: (text: string) => void) {
    this.#mark = new ExecutionMark()
    const env = { ...DEFAULT_ENV, ...process.env, PYTHONUNBUFFERED: '1' }
    this.#child = spawn(python, [script, ...args], { stdio: ['pipe', 'pipe', 'pipe', this.#mark.fd], env })
    const lines = new AnswerLines(
      (number, text) => (number === 0 ? ready(text) : this.#answered(number, text)),
      (number) => this.#kill({ how: 'was killed because an answer exceeded 64 MB', hung: false, culprit: number }),
    )
    const { stdin, stdout, stderr } = this.#child
    stdin?.on('error', () => {})
    stdout?.on('error', () => {}).on('data', lines.add)
    this.#stderr = stderrTail(stderr)
    for (const stream of [stdin, stderr] as (Socket | null)[]) stream?.unref()
    void this.#ending()
  }

  /** Rejects with a `ProgramEnded` if the process ends before it is ready. */
  static start(command: PythonCommand): Promise<PythonProgram> {
    return outsideTasks(
      () =>
        new Promise((resolve, reject) => {
          const program = new PythonProgram(command, () => {
            clearTimeout(timer)
            program.#forget(0)
            resolve(program)
          })
          const late = { how: `was killed because it was not ready after ${START_MS / 1000} s`, hung: true }
          const timer = setTimeout(() => program.#kill(late), START_MS)
          program.#expect(0, {
            limitMs: Number.POSITIVE_INFINITY,
            resolve: () => {},
            reject(error) {
              clearTimeout(timer)
              reject(error)
            },
          })
        }),
    )
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Sends a request. Python executes requests one after the other. Rejects with a `ProgramEnded`. */
  ask(operation: Operation, episode: number, body: string, limitMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.end !== undefined) return reject(new ProgramEnded(this.end, false))
      const number = ++this.#numbers
      this.#expect(number, { limitMs, resolve, reject })
      this.#send(`${number} ${operation} ${episode} ${body}\n`)
    })
  }

  /** Closes an episode. There is no answer. */
  closeEpisode(episode: number): void {
    if (this.end === undefined) this.#send(`${++this.#numbers} close ${episode} null\n`)
  }

  /** Lets the process exit after it has executed all requests. */
  finish(): void {
    this.#child.stdin?.end()
  }

  kill(why: string): void {
    this.#kill({ how: `was killed because ${why}`, hung: false })
  }

  /** Requests of many episodes in one turn of the event loop share a write. */
  #send(line: string): void {
    if (this.#lines === '') outsideTasks(() => setImmediate(this.#flush))
    this.#lines += line
  }

  readonly #flush = () => {
    this.#child.stdin?.write(this.#lines)
    this.#lines = ''
  }

  #expect(number: number, pending: Pending): void {
    this.#pending.set(number, pending)
    if (this.#pending.size === 1) this.#keepAlive()
  }

  #forget(number: number): void {
    this.#pending.delete(number)
    if (this.#pending.size === 0) this.#rest()
  }

  #answered(number: number, text: string): void {
    const pending = this.#pending.get(number)
    this.#answers++
    if (pending === undefined) return
    this.#forget(number)
    pending.resolve(text)
  }

  /** Keeps this process alive until the answer has arrived. */
  #keepAlive(): void {
    ;(this.#child.stdout as Socket | null)?.ref()
    this.#child.ref()
    this.#looking ??= outsideTasks(() => setTimeout(this.#look, this.#lookMs).unref())
  }

  #rest(): void {
    ;(this.#child.stdout as Socket | null)?.unref()
    this.#child.unref()
  }

  get #lookMs(): number {
    const limits = [...this.#pending.values()].map(({ limitMs }) => limitMs / 4)
    return Math.max(10, Math.min(LOOK_MS, ...limits))
  }

  /** Counts time in checks, so that a blocked event loop of this process does not count against Python. */
  readonly #look = () => {
    this.#looking = undefined
    if (this.end !== undefined || this.#pending.size === 0) return
    const every = this.#lookMs
    const executing = this.#mark.read()
    const same = executing === this.#seen.executing && this.#answers === this.#seen.answers
    const ms = same ? this.#seen.ms + every : 0
    this.#seen = { executing, answers: this.#answers, ms }
    // If Python executes nothing and does not answer, it has stopped reading its input.
    const limits = [...this.#pending.values()].map(({ limitMs }) => limitMs)
    const limitMs = this.#pending.get(executing)?.limitMs ?? Math.max(...limits)
    const how = `was killed because a request took longer than ${limitMs} ms`
    if (ms > limitMs) this.#kill({ how, hung: true, culprit: executing })
    else this.#looking = setTimeout(this.#look, every).unref()
  }

  #kill(why: KillReason): void {
    this.#killed ??= why
    this.#child.kill('SIGKILL')
  }

  async #ending(): Promise<void> {
    const drained = new Promise<void>((resolve) => this.#child.stdout?.once('close', () => resolve()))
    const exited = await new Promise<string>((resolve) => {
      this.#child.once('error', (error) => resolve(`failed to start: ${error.message}`))
      this.#child.once('exit', (code, signal) =>
        resolve(signal === null ? `exited with code ${code}` : `was killed by ${signal}`),
      )
    })
    const enough = new AbortController()
    await Promise.race([drained, sleep(DRAIN_MS, undefined, { signal: enough.signal }).catch(() => {})])
    enough.abort()
    const { how = exited, hung = false, culprit = this.#mark.read() } = this.#killed ?? {}
    this.#mark.close()
    this.end = { how, stderr: this.#stderr(), executing: culprit, hung }
    for (const [number, { reject }] of this.#pending)
      reject(new ProgramEnded(this.end, number === culprit && number !== 0))
    this.#pending.clear()
  }
}
