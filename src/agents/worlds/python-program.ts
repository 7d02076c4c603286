import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { AnswerLines } from './answer-lines.ts'
import { ExecutionMark } from './execution-mark.ts'
import { outsideTasks } from './outside-tasks.ts'

/** Python reads a large package from a cold disk. */
const START_MS = 120_000
const STDERR_CHARS = 4000
/** Programs that a world has started may hold on to the pipe of answers when Python is gone. */
const DRAIN_MS = 1000
/** How often it is looked whether a request hangs; at most so often, and at least four times within its limit. */
const LOOK_MS = 500

const DEFAULT_ENV = {
  // The order of sets of texts depends on it: the same on every machine, or worlds with the same seed would differ.
  PYTHONHASHSEED: '0',
  PYTHONWARNINGS: 'ignore',
  // There is a process per worker, and workers are as many as cores.
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

/** Why a Python process is no more. */
export interface ProgramEnd {
  /** "ended with code 1", "was ended by SIGSEGV", "was killed, because …" */
  readonly how: string
  readonly stderr: string
  /** The request that was executing; 0: none was. */
  readonly executing: number
  /** It was killed because that request took too long. */
  readonly hung: boolean
}

/** The answer to a request will not come. */
export class ProgramEnded extends Error {
  readonly end: ProgramEnd
  /** Whether it was this request that was executing. */
  readonly guilty: boolean

  constructor(end: ProgramEnd, guilty: boolean) {
    super(`the Python process ${end.how}`)
    this.end = end
    this.guilty = guilty
  }
}

/** Why we ended it ourselves; `guilty`: the request that is to blame, if it is not the one that was executing. */
type KillReason = Pick<ProgramEnd, 'how' | 'hung'> & { readonly guilty?: number }

interface Pending {
  readonly limitMs: number
  resolve(text: string): void
  reject(error: ProgramEnded): void
}

/** A Python process that serves worlds: python/world_server.py. It ends with this process, however that ends. */
export class PythonProgram {
  /** Set when it has ended. */
  end: ProgramEnd | undefined
  readonly #child: ChildProcess
  readonly #mark: ExecutionMark
  readonly #pending = new Map<number, Pending>()
  #numbers = 0
  #lines = ''
  #stderr = ''
  #looking: NodeJS.Timeout | undefined
  #answers = 0
  /** What the last look found, and for how long looks have found just that. */
  #seen = { executing: 0, answers: 0, ms: 0 }
  #killed: KillReason | undefined

  private constructor({ python, script, args }: PythonCommand, ready: (text: string) => void) {
    this.#mark = new ExecutionMark()
    const env = { ...DEFAULT_ENV, ...process.env, PYTHONUNBUFFERED: '1' }
    this.#child = spawn(python, [script, ...args], { stdio: ['pipe', 'pipe', 'pipe', this.#mark.fd], env })
    const lines = new AnswerLines(
      (number, text) => (number === 0 ? ready(text) : this.#answered(number, text)),
      (number) =>
        this.#kill({ how: 'was killed, because it answered with more than 64 MB', hung: false, guilty: number }),
    )
    const { stdin, stdout, stderr } = this.#child
    stdin?.on('error', () => {})
    stdout?.on('error', () => {}).on('data', lines.add)
    stderr
      ?.on('error', () => {})
      .on('data', (chunk: Buffer) => {
        this.#stderr = (this.#stderr + chunk.toString()).slice(-STDERR_CHARS)
      })
    for (const stream of [stdin, stderr] as (Socket | null)[]) stream?.unref()
    void this.#ending()
  }

  /** Rejects with a `ProgramEnded` if it ends before it is ready. */
  static start(command: PythonCommand): Promise<PythonProgram> {
    return outsideTasks(
      () =>
        new Promise((resolve, reject) => {
          const program = new PythonProgram(command, () => {
            clearTimeout(timer)
            program.#forget(0)
            resolve(program)
          })
          const late = { how: `was killed, because it was not ready after ${START_MS / 1000} s`, hung: true }
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

  /** Requests are executed one after the other. Rejects with a `ProgramEnded`. */
  ask(operation: Operation, episode: number, body: string, limitMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.end !== undefined) return reject(new ProgramEnded(this.end, false))
      const number = ++this.#numbers
      this.#expect(number, { limitMs, resolve, reject })
      this.#send(`${number} ${operation} ${episode} ${body}\n`)
    })
  }

  /** Nothing is heard of it. */
  closeEpisode(episode: number): void {
    if (this.end === undefined) this.#send(`${++this.#numbers} close ${episode} null\n`)
  }

  /** Lets it end by itself, once it has done what it was asked for. */
  finish(): void {
    this.#child.stdin?.end()
  }

  kill(why: string): void {
    this.#kill({ how: `was killed, because ${why}`, hung: false })
  }

  /** What many episodes ask for in one turn of the event loop is one write. */
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

  /** A driver that waits for nothing else must not leave before the answer is here. */
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

  /** Time is counted in looks: while the event loop of this process is blocked, it does not count against Python. */
  readonly #look = () => {
    this.#looking = undefined
    if (this.end !== undefined || this.#pending.size === 0) return
    const every = this.#lookMs
    const executing = this.#mark.read()
    const same = executing === this.#seen.executing && this.#answers === this.#seen.answers
    const ms = same ? this.#seen.ms + every : 0
    this.#seen = { executing, answers: this.#answers, ms }
    // If it executes nothing and does not answer either, it has stopped reading.
    const limits = [...this.#pending.values()].map(({ limitMs }) => limitMs)
    const limitMs = this.#pending.get(executing)?.limitMs ?? Math.max(...limits)
    const how = `was killed, because a request took longer than ${limitMs} ms`
    if (ms > limitMs) this.#kill({ how, hung: true, guilty: executing })
    else this.#looking = setTimeout(this.#look, every).unref()
  }

  #kill(why: KillReason): void {
    this.#killed ??= why
    this.#child.kill('SIGKILL')
  }

  async #ending(): Promise<void> {
    const drained = new Promise<void>((resolve) => this.#child.stdout?.once('close', () => resolve()))
    const exited = await new Promise<string>((resolve) => {
      this.#child.once('error', (error) => resolve(`could not be started: ${error.message}`))
      this.#child.once('exit', (code, signal) =>
        resolve(signal === null ? `ended with code ${code}` : `was ended by ${signal}`),
      )
    })
    const enough = new AbortController()
    await Promise.race([drained, sleep(DRAIN_MS, undefined, { signal: enough.signal }).catch(() => {})])
    enough.abort()
    const { how = exited, hung = false, guilty = this.#mark.read() } = this.#killed ?? {}
    this.#mark.close()
    this.end = { how, stderr: this.#stderr.trim(), executing: guilty, hung }
    for (const [number, { reject }] of this.#pending)
      reject(new ProgramEnded(this.end, number === guilty && number !== 0))
    this.#pending.clear()
  }
}
