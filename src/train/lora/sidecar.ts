import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { outsideTasks } from '../../agents/worlds/outside-tasks.ts'
import { type ErrorCode, ManyworldsError } from '../../errors.ts'
import { ownPackage } from '../../own-package.ts'
import { keptBytecode } from '../../python/bytecode.ts'
import { stderrTail } from '../../stderr-tail.ts'
import { Heartbeat, SILENT_MS } from '../heartbeat.ts'
import { loraPython } from './environment.ts'
import { FrameReader, type FromSidecar, requestFrame } from './frames.ts'
import { adviceFor } from './sidecar-advice.ts'

const PROTOCOL = 1
/** The process exits by itself when its input is closed. */
const CLOSE_MS = 5000
/** How long to wait for the rest of the output after exit. */
const DRAIN_MS = 1000
/** The id of the first message. */
const READY = 0
/** Error types of Python that are our error codes. */
const CODES: readonly string[] = [
  'LEARNER_INVALID',
  'LEARNER_FAILED',
  'ROW_INVALID',
  'POLICY_INVALID',
] satisfies readonly ErrorCode[]

const DEFAULT_ENV = {
  // Some CPUs report AMX but do not permit it; bf16 would then raise SIGILL.
  ONEDNN_MAX_CPU_ISA: 'AVX512_CORE_BF16',
  // Without this, processes forked after the tokenizer was used print a warning on every call.
  TOKENIZERS_PARALLELISM: 'false',
  HF_HUB_DISABLE_TELEMETRY: '1',
}

export interface SidecarOptions {
  /** Receives messages about slow steps, such as creating the Python environment. */
  readonly notice?: (line: string) => void
  /** Kills the process immediately. */
  readonly signal?: AbortSignal
  /** Kills a process that sent no heartbeat for this long. Default 2 minutes. */
  readonly silentMs?: number
}

/** The part of a sidecar that a core uses. */
export type Computing = Pick<Sidecar, 'call' | 'ended' | 'close'>

interface Pending {
  readonly op: string
  readonly timer: NodeJS.Timeout | undefined
  resolve(answer: { result: unknown; parts: Uint8Array[] }): void
  reject(error: ManyworldsError): void
}

/**
 * The Python process of a LoRA policy: python/lora_sidecar.py. It exits with this process, however that ends. Calls are
 * executed one at a time, and may take as long as they compute; the process sends heartbeats meanwhile. If it dies or
 * becomes silent, pending and later calls fail with `LEARNER_FAILED`.
 */
export class Sidecar {
  readonly #child: ChildProcess
  readonly #pending = new Map<number, Pending>()
  readonly #exited: Promise<void>
  readonly #heartbeat: Heartbeat
  #calls = 0
  readonly #stderr: () => string
  #closing = false
  /** Why we killed it. */
  #killed: string | undefined
  #end: ManyworldsError | undefined

  private constructor(python: string, { signal, silentMs = SILENT_MS }: SidecarOptions) {
    this.#heartbeat = new Heartbeat(silentMs, () => this.#kill(`it sent no heartbeat for ${silentMs / 1000} s`))
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
        this.#heartbeat.beat()
        try {
          frames.add(chunk)
        } catch (error) {
          this.#kill(`its standard output is not a valid message: ${(error as Error).message}`)
        }
      })
    this.#stderr = stderrTail(stderr)
    for (const stream of [stdin, stderr] as (Socket | null)[]) stream?.unref()
    signal?.addEventListener('abort', () => this.#kill('its caller aborted'), { once: true })
    this.#exited = this.#ending()
  }

  /**
   * Rejects with `LEARNER_FAILED` if the process exits before it is ready, or with the error of creating its Python
   * environment.
   */
  static async start(options: SidecarOptions = {}): Promise<Sidecar> {
    const { notice = () => {}, signal } = options
    const python = await loraPython(notice)
    signal?.throwIfAborted()
    const sidecar = outsideTasks(() => new Sidecar(python, options))
    await sidecar.#expect(READY, 'start')
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
    limitMs?: number,
  ): Promise<{ result: Result; parts: Uint8Array[] }> {
    const id = ++this.#calls
    const answer = this.#expect(id, op, limitMs)
    if (this.#end === undefined) for (const part of requestFrame(id, op, args, parts)) this.#child.stdin?.write(part)
    return answer as Promise<{ result: Result; parts: Uint8Array[] }>
  }

  /** Closes the process; pending calls fail. Resolves when the process has exited. */
  async close(): Promise<void> {
    this.#closing = true
    this.#child.stdin?.end()
    const enough = new AbortController()
    const late = sleep(CLOSE_MS, undefined, { signal: enough.signal }).then(
      () => this.#kill('it did not exit by itself'),
      () => {},
    )
    await Promise.race([this.#exited, late])
    enough.abort()
    await this.#exited
  }

  #expect(id: number, op: string, limitMs?: number): Promise<{ result: unknown; parts: Uint8Array[] }> {
    return new Promise((resolve, reject) => {
      if (this.#end !== undefined)
        return reject(new ManyworldsError(this.#end.code, this.#end.message, { cause: this.#end }))
      const timer =
        limitMs === undefined
          ? undefined
          : outsideTasks(() => setTimeout(() => this.#kill(`'${op}' took longer than ${limitMs / 1000} s`), limitMs))
      this.#pending.set(id, { op, timer, resolve, reject })
      if (this.#pending.size === 1) this.#isAwaited(true)
    })
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id)
    clearTimeout(pending?.timer)
    if (this.#pending.delete(id) && this.#pending.size === 0) this.#isAwaited(false)
    return pending
  }

  #receive(header: FromSidecar, parts: Uint8Array[]): void {
    if ('heartbeat' in header) return
    if ('ready' in header) {
      if (header.protocol === PROTOCOL) this.#take(READY)?.resolve({ result: header, parts })
      else this.#kill(`it uses protocol version ${header.protocol}, not ${PROTOCOL}`)
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

  /** The process must stay alive and send heartbeats while a call is pending. */
  #isAwaited(alive: boolean): void {
    outsideTasks(() => this.#heartbeat.watch(alive))
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

  /** Calls are executed in order, so the first pending one was running. */
  #words(how: string, signal: string | null): string {
    const [open] = this.#pending.values()
    const during = open === undefined ? '' : ` during '${open.op}'`
    if (this.#closing) return `was closed${during}`
    const printed = this.#stderr()
    const shown = printed === '' ? '' : `\nIt printed:\n${printed}`
    if (this.#killed !== undefined) return `was killed, because ${this.#killed}${during}${shown}`
    const message = printed.split('\n').at(-1)!
    return `${how}${during}${adviceFor({ signal, message })}${shown}`
  }
}

const ending = (child: ChildProcess) =>
  new Promise<{ how: string; signal: string | null }>((resolve) => {
    child.once('error', (error) => resolve({ how: `could not start: ${error.message}`, signal: null }))
    child.once('exit', (code, signal) =>
      resolve({ how: signal === null ? `exited with code ${code}` : `was killed by ${signal}`, signal }),
    )
  })
