import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { outsideTasks } from '../../agents/worlds/outside-tasks.ts'
import { type ErrorCode, ManyworldsError } from '../../errors.ts'
import { ownPackage } from '../../own-package.ts'
import { keptBytecode } from '../../python/bytecode.ts'
import { loraPython } from './environment.ts'
import { FrameReader, type FromSidecar, requestFrame } from './frames.ts'
import { adviceFor } from './sidecar-advice.ts'

const PROTOCOL = 1
/** PyTorch is read from a cold disk, on a machine that is busy. */
const START_MS = 300_000
/** A large base model may have to be downloaded first. A learner in a thread has a tighter limit of its own. */
const CALL_MS = 60 * 60_000
/** It ends by itself at the end of its input. */
const CLOSE_MS = 5000
/** Between its end and the last of its output. */
const DRAIN_MS = 1000
const STDERR_CHARS = 4000
/** What the first frame answers. */
const READY = 0
/** Errors of Python that name one of our codes. */
const CODES: readonly string[] = [
  'LEARNER_INVALID',
  'LEARNER_FAILED',
  'ROW_INVALID',
  'POLICY_INVALID',
] satisfies readonly ErrorCode[]

const DEFAULT_ENV = {
  // Some CPUs say that they have AMX, and do not allow it: bf16 would end in SIGILL.
  ONEDNN_MAX_CPU_ISA: 'AVX512_CORE_BF16',
  // Processes that are forked after the tokenizer was used warn on every call.
  TOKENIZERS_PARALLELISM: 'false',
  HF_HUB_DISABLE_TELEMETRY: '1',
}

export interface SidecarOptions {
  /** Told what takes long, such as making the Python environment. */
  readonly notice?: (line: string) => void
  /** Ends it at once. */
  readonly signal?: AbortSignal
}

/** What a core needs of a sidecar. */
export type Computing = Pick<Sidecar, 'call' | 'ended' | 'close'>

interface Pending {
  readonly op: string
  readonly timer: NodeJS.Timeout
  resolve(answer: { result: unknown; parts: Uint8Array[] }): void
  reject(error: ManyworldsError): void
}

/**
 * The Python process that computes for a LoRA policy: python/lora_sidecar.py. It ends with this process, however that ends. Calls are
 * executed one after the other; a process that dies fails those that are open, and all later ones, with `LEARNER_FAILED`.
 */
export class Sidecar {
  readonly #child: ChildProcess
  readonly #pending = new Map<number, Pending>()
  readonly #exited: Promise<void>
  #calls = 0
  #stderr = ''
  #closing = false
  /** Why we ended it ourselves. */
  #killed: string | undefined
  #end: ManyworldsError | undefined

  private constructor(python: string, signal: AbortSignal | undefined) {
    const env = {
      ...DEFAULT_ENV,
      ...process.env,
      PYTHONUNBUFFERED: '1',
      ...(process.env.MANYWORLDS_LORA_PYTHON ? {} : keptBytecode(python)),
    }
    const script = join(ownPackage.folder, 'python', 'lora_sidecar.py')
    this.#child = spawn(python, [script], { stdio: 'pipe', env })
    const { stdin, stdout, stderr } = this.#child
    const frames = new FrameReader((header, parts) => this.#receive(header, parts))
    stdin?.on('error', () => {})
    stdout
      ?.on('error', () => {})
      .on('data', (chunk: Buffer) => {
        if (this.#killed !== undefined) return
        try {
          frames.add(chunk)
        } catch (error) {
          this.#kill(`what it wrote to standard output is no answer: ${(error as Error).message}`)
        }
      })
    stderr
      ?.on('error', () => {})
      .on('data', (chunk: Buffer) => {
        this.#stderr = (this.#stderr + chunk.toString()).slice(-STDERR_CHARS)
      })
    for (const stream of [stdin, stderr] as (Socket | null)[]) stream?.unref()
    signal?.addEventListener('abort', () => this.#kill('its caller gave up'), { once: true })
    this.#exited = this.#ending()
  }

  /** Rejects with `LEARNER_FAILED` if it ends before it is ready, and as making its Python environment does. */
  static async start({ notice = () => {}, signal }: SidecarOptions = {}): Promise<Sidecar> {
    const python = await loraPython(notice)
    signal?.throwIfAborted()
    const sidecar = outsideTasks(() => new Sidecar(python, signal))
    await sidecar.#expect(READY, 'start', START_MS)
    return sidecar
  }

  get ended(): boolean {
    return this.#end !== undefined
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  call<Result = unknown>(
    op: string,
    args: unknown = {},
    parts: readonly Uint8Array[] = [],
    limitMs: number = CALL_MS,
  ): Promise<{ result: Result; parts: Uint8Array[] }> {
    const id = ++this.#calls
    const answer = this.#expect(id, op, limitMs)
    if (this.#end === undefined) for (const part of requestFrame(id, op, args, parts)) this.#child.stdin?.write(part)
    return answer as Promise<{ result: Result; parts: Uint8Array[] }>
  }

  /** Open calls fail. Resolves when the process is gone. */
  async close(): Promise<void> {
    this.#closing = true
    this.#child.stdin?.end()
    const enough = new AbortController()
    const late = sleep(CLOSE_MS, undefined, { signal: enough.signal }).then(
      () => this.#kill('it did not end by itself'),
      () => {},
    )
    await Promise.race([this.#exited, late])
    enough.abort()
    await this.#exited
  }

  #expect(id: number, op: string, limitMs: number): Promise<{ result: unknown; parts: Uint8Array[] }> {
    return new Promise((resolve, reject) => {
      if (this.#end !== undefined)
        return reject(new ManyworldsError(this.#end.code, this.#end.message, { cause: this.#end }))
      const late = `'${op}' took longer than ${limitMs / 1000} s`
      const timer = outsideTasks(() => setTimeout(() => this.#kill(late), limitMs))
      this.#pending.set(id, { op, timer, resolve, reject })
      if (this.#pending.size === 1) this.#keepAlive(true)
    })
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id)
    clearTimeout(pending?.timer)
    if (this.#pending.delete(id) && this.#pending.size === 0) this.#keepAlive(false)
    return pending
  }

  #receive(header: FromSidecar, parts: Uint8Array[]): void {
    if ('ready' in header) {
      if (header.protocol === PROTOCOL) this.#take(READY)?.resolve({ result: header, parts })
      else this.#kill(`it speaks version ${header.protocol} of the protocol, not ${PROTOCOL}`)
      return
    }
    const pending = this.#take(header.id)
    if (header.ok) pending?.resolve({ result: header.result, parts })
    else pending?.reject(this.#failed(pending.op, header.error))
  }

  #failed(op: string, { type, message }: { readonly type: string; readonly message: string }): ManyworldsError {
    if (CODES.includes(type)) return new ManyworldsError(type as ErrorCode, message)
    const advice = adviceFor({ message })
    return new ManyworldsError('LEARNER_FAILED', `'${op}' failed in Python: ${type}: ${message}${advice}`)
  }

  /** Whoever waits for an answer must not leave before it is here. */
  #keepAlive(alive: boolean): void {
    for (const each of [this.#child, this.#child.stdout as Socket | null]) alive ? each?.ref() : each?.unref()
  }

  #kill(why: string): void {
    this.#killed ??= why
    this.#child.kill('SIGKILL')
  }

  async #ending(): Promise<void> {
    const drained = new Promise<void>((resolve) => this.#child.stdout?.once('close', () => resolve()))
    const { how, signal } = await ending(this.#child)
    const enough = new AbortController()
    await Promise.race([drained, sleep(DRAIN_MS, undefined, { signal: enough.signal }).catch(() => {})])
    enough.abort()
    this.#end = new ManyworldsError(
      'LEARNER_FAILED',
      `the Python process of the LoRA learner ${this.#words(how, signal)}`,
    )
    for (const id of [...this.#pending.keys()]) this.#take(id)!.reject(this.#end)
  }

  /** Calls are executed in their order: it was the first of those that are open. */
  #words(how: string, signal: string | null): string {
    const [open] = this.#pending.values()
    const during = open === undefined ? '' : ` during '${open.op}'`
    if (this.#closing) return `was closed${during}`
    const printed = this.#stderr.trim()
    const shown = printed === '' ? '' : `\nIt printed:\n${printed}`
    if (this.#killed !== undefined) return `was ended, because ${this.#killed}${during}${shown}`
    const message = printed.split('\n').at(-1)!
    return `${how}${during}${adviceFor({ signal, message })}${shown}`
  }
}

const ending = (child: ChildProcess) =>
  new Promise<{ how: string; signal: string | null }>((resolve) => {
    child.once('error', (error) => resolve({ how: `could not be started: ${error.message}`, signal: null }))
    child.once('exit', (code, signal) =>
      resolve({ how: signal === null ? `ended with code ${code}` : `was ended by ${signal}`, signal }),
    )
  })
