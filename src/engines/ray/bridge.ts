import { type ChildProcess, spawn } from 'node:child_process'
import type { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { stderrTail } from '../../stderr-tail.ts'

/** The Python end: `python/ray_bridge.py`, which places actors and routes bytes. */
const SCRIPT = fileURLToPath(new URL('../../../python/ray_bridge.py', import.meta.url))

const KIND = { control: 0, data: 1, code: 2 } as const
/** Length of what follows (u32), kind (u8), worker (u32), generation of its process (u32), little endian. */
const HEADER_BYTES = 13
const LENGTH_BYTES = 4
const STDERR_CHARS = 8000

/** Messages of the bridge; `python/ray_bridge.py` sends them with `say`. */
export type BridgeEvent =
  | { event: 'init'; ray: string; python: string; nodes: RayNode[] }
  | { event: 'nodes'; nodes: RayNode[] }
  | { event: 'published'; sha256: string; error?: string }
  | { event: 'placed'; worker: number; host: string; actor: number }
  /** The actor is alive while it starts a process, which may take long: it may have to fetch gigabytes. */
  | { event: 'starting'; worker: number }
  | { event: 'started'; worker: number; generation: number; pid: number }
  | { event: 'beat'; worker: number; tasks: number }
  /** Output outside of any task, if the run shows it. */
  | { event: 'printed'; worker: number; generation: number; text: string }
  | { event: 'taken'; worker: number; generation: number; bytes: number }
  | { event: 'brought'; worker: number; request: number }
  | { event: 'blob-put'; sha256: string; error?: string }
  | { event: 'blob-brought'; worker: number; request: number }
  /** An actor could not store a blob: `text` says where and why. */
  | { event: 'blob-missing'; worker: number; sha256: string; text: string }
  | ({ event: 'ended'; worker: number; generation: number } & ExitOnRay)
  | { event: 'lost'; worker: number; kind: string; text: string }
  /** A request to the cluster (not to a worker) failed. */
  | { event: 'error'; kind: string; text: string }

export interface ExitOnRay {
  readonly code: number | null
  readonly signal: string | null
  readonly lastWords: string | null
  readonly stderr: string | null
}

/** A machine of the cluster. */
export interface RayNode {
  readonly id: string
  readonly host: string
  readonly resources: Readonly<Record<string, number>>
}

export interface BridgeHooks {
  event(event: BridgeEvent): void
  /** Bytes of a worker: part of its stream of frames. */
  data(worker: number, generation: number, bytes: Buffer): void
  /** Called with the end of its stderr whenever it has printed more. */
  stderr(tail: string): void
  /** It is gone, and with it every actor. */
  ended(how: string, stderr: string): void
}

/** The process between the driver and Ray. It ends with the driver, because its stdin closes. */
export class Bridge {
  readonly #child: ChildProcess
  readonly #stdin: Writable
  #stopping = false
  readonly exited: Promise<void>

  constructor(python: string, env: NodeJS.ProcessEnv, hooks: BridgeHooks) {
    // Its own process group: only the driver handles Ctrl-C.
    const child = spawn(python, ['-u', SCRIPT], { stdio: ['pipe', 'pipe', 'pipe'], env, detached: true })
    this.#child = child
    this.#stdin = child.stdin!
    this.#stdin.on('error', () => {})
    const stderr = stderrTail(child.stderr, { chars: STDERR_CHARS, heard: hooks.stderr })
    child.stdout!.on('data', messages(hooks))
    this.exited = new Promise((resolve) => {
      const end = (how: string) => {
        if (!this.#stopping) hooks.ended(how, stderr())
        resolve()
      }
      child.once('error', (error) => end(error.message))
      child.once('exit', (code, signal) => end(signal ?? `exit code ${code}`))
    })
  }

  control(message: { op: string } & Record<string, unknown>): void {
    this.#send(KIND.control, 0, 0, Buffer.from(JSON.stringify(message)))
  }

  /** Bytes for one process of a worker; late bytes never reach its successor. */
  data(worker: number, generation: number, bytes: Uint8Array): void {
    this.#send(KIND.data, worker, generation, bytes)
  }

  publish(sha256: string, packed: Uint8Array): void {
    this.control({ op: 'publish', sha256 })
    this.#send(KIND.code, 0, 0, packed)
  }

  keepAlive(alive: boolean): void {
    const handles = [this.#child, this.#stdin, this.#child.stdout, this.#child.stderr] as unknown as (
      | ChildProcess
      | undefined
    )[]
    for (const handle of handles) alive ? handle?.ref?.() : handle?.unref?.()
  }

  /** Asks it to end; kills it if that takes too long. */
  async stop(withinMs: number): Promise<void> {
    this.#stopping = true
    this.control({ op: 'stop' })
    this.#stdin.end()
    const timer = setTimeout(() => this.kill(), withinMs)
    await this.exited
    clearTimeout(timer)
  }

  kill(): void {
    this.#stopping = true
    this.#child.kill('SIGKILL')
  }

  #send(kind: number, worker: number, generation: number, body: Uint8Array): void {
    const header = Buffer.allocUnsafe(HEADER_BYTES)
    header.writeUInt32LE(body.byteLength + HEADER_BYTES - LENGTH_BYTES, 0)
    header[4] = kind
    header.writeUInt32LE(worker, 5)
    header.writeUInt32LE(generation, 9)
    this.#stdin.write(header)
    this.#stdin.write(body)
  }
}

/** Cuts the bridge's output into messages. */
function messages({ event, data }: BridgeHooks): (chunk: Buffer) => void {
  let rest: Buffer[] = []
  let have = 0
  let need = HEADER_BYTES
  return (chunk) => {
    rest.push(chunk)
    have += chunk.byteLength
    if (have < need) return
    let bytes = rest.length === 1 ? chunk : Buffer.concat(rest)
    for (;;) {
      need = bytes.byteLength < HEADER_BYTES ? HEADER_BYTES : bytes.readUInt32LE(0) + LENGTH_BYTES
      if (bytes.byteLength < need) break
      const worker = bytes.readUInt32LE(5)
      const body = bytes.subarray(HEADER_BYTES, need)
      if (bytes[4] === KIND.data) data(worker, bytes.readUInt32LE(9), body)
      else event(JSON.parse(body.toString()) as BridgeEvent)
      bytes = bytes.subarray(need)
    }
    rest = [bytes]
    have = bytes.byteLength
  }
}
