import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import { OWNER_VARIABLE } from '../owned-processes.ts'
import { isMarked } from '../protocol/split-wire.ts'
import { withoutKnownSecrets } from '../redaction/unattributed.ts'
import { stderrTail } from '../stderr-tail.ts'
import { FDS_VARIABLE } from '../worker/role.ts'
import { compileCache } from './compile-cache.ts'
import { sweepAfter, sweepNow } from './ended-workers.ts'
import type { Placement, WorkerExit, WorkerLink } from './engine.ts'
import { frameReader, writeFrame } from './frames.ts'
import { WatchdogReader } from './watchdog-reader.ts'
import { linesOf, readLines } from './worker-output.ts'

/** How often the streams of an ended worker that are still open are checked, and how often at most. */
const HELD_CHECK_MS = 500
const MAX_HELD_CHECKS = 20

/** A link to a worker process on this machine. */
export interface ProcessLink extends WorkerLink {
  /** Whether a frame has arrived: a process that ends without one could not start. */
  readonly spoke: boolean
  /** The number of running tasks in its last heartbeat. */
  readonly tasks: number
  /** Heartbeats since the last check. */
  takeBeats(): number
  keepAlive(alive: boolean): void
  /** Ends the process; its exit will have this reason. */
  killFor(reason: string): void
}

/** Gets whole lines that this worker printed outside of any task. */
export type ShowOutput = (lines: string, worker: string) => void

/** All live workers, so that the driver's exit leaves nothing behind even if the engine was not stopped. */
const alive = new Map<number, string>()
process.on('exit', () => {
  for (const [pid, owner] of alive) {
    killGroup(pid)
    sweepAfter(owner)
  }
  sweepNow()
})

/**
 * Starts a worker: frames on fd 3, its watchdog on fd 4, and frames of its side thread on fd 5. It leads its own process group,
 * so that processes started by tasks end with it, and so that Ctrl-C at the terminal reaches only the driver. Processes that
 * left the group have its mark in their environment.
 */
export function startWorkerProcess(
  placement: Placement,
  id: string,
  generation: number,
  show: ShowOutput = (lines, worker) => void process.stderr.write(linesOf(worker, withoutKnownSecrets(lines))),
): ProcessLink {
  // Loaded here: workers import this module too, and start no processes.
  const { spawn } = process.getBuiltinModule('node:child_process')
  // The worker compares the pid with that of its parent: a worker started in another way may have inherited another's mark.
  const owner = `${process.pid}-${randomUUID()}`
  const child = spawn(process.execPath, [...placement.execArgv, placement.workerEntry], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
    cwd: placement.cwd,
    env: { ...compileCache(placement.env), ...placement.env, [FDS_VARIABLE]: '3,4,5', [OWNER_VARIABLE]: owner },
    detached: true,
  })
  // If no file descriptors are left, there is no stdio, and the error comes as an event.
  if (child.stdio?.[3] === undefined) return stillborn(child, id, generation)
  const frames = child.stdio[3] as Socket
  const watchdog = child.stdio[4] as unknown as Socket
  const side = (child.stdio as unknown as Socket[])[5]!
  const { pid } = child
  if (pid !== undefined) alive.set(pid, owner)

  let beats = 0
  const heard = new WatchdogReader()
  let reason: string | undefined
  watchdog.setEncoding('utf8')
  watchdog.on('data', (text: string) => {
    beats++
    heard.hear(text)
  })
  // Output outside of any task is dropped unless the run asks for it; the end of stderr is kept for the worker's crash.
  for (const stream of [child.stdout, child.stderr])
    if (placement.output === 'show') readLines(stream, (lines) => show(lines, id))
    else stream?.resume()
  const stderr = stderrTail(child.stderr)

  for (const stream of [frames, watchdog, side]) stream.on('error', () => {})
  const closed = exitOf(child).then(async (exit): Promise<WorkerExit> => {
    if (pid !== undefined) {
      killGroup(pid)
      alive.delete(pid)
      sweepAfter(owner)
    }
    await readToEnd([frames, side])
    watchdog.destroy()
    const { lastWords } = heard
    const said = stderr()
    return {
      ...exit,
      ...(reason === undefined ? {} : { reason }),
      ...(lastWords === undefined ? {} : { lastWords }),
      ...(said === '' ? {} : { stderr: said }),
    }
  })
  const isFull = () => frames.writableNeedDrain || side.writableNeedDrain
  const kill = () => {
    if (pid !== undefined) killGroup(pid)
  }
  const killFor = (why: string) => {
    reason ??= why
    kill()
  }

  return {
    id,
    generation,
    info: { host: hostname(), ...(pid === undefined ? {} : { pid }) },
    send(frame) {
      writeFrame(isMarked(frame) ? side : frames, frame)
      return !isFull()
    },
    onDrain: (listener) => {
      for (const stream of [frames, side]) stream.on('drain', () => !isFull() && listener())
    },
    onFrame: (listener) => {
      for (const stream of [frames, side])
        stream.on(
          'data',
          frameReader(listener, (what) => killFor(`it sent ${what}`)),
        )
    },
    get spoke() {
      return frames.bytesRead > 0
    },
    get tasks() {
      return heard.tasks
    },
    pause: () => {
      for (const stream of [frames, side]) stream.pause()
    },
    resume: () => {
      for (const stream of [frames, side]) stream.resume()
    },
    closed,
    kill,
    killFor,
    takeBeats() {
      const taken = beats
      beats = 0
      return taken
    },
    keepAlive(wanted) {
      // All of them: a worker's exit is known only after its streams were read to the end, and this process must not
      // exit in between.
      const handles = [child, frames, watchdog, side, child.stdout, child.stderr] as (ChildProcess | Socket | null)[]
      for (const handle of handles) wanted ? handle?.ref() : handle?.unref()
    },
  }
}

function stillborn(child: ChildProcess, id: string, generation: number): ProcessLink {
  const nothing = () => {}
  const closed = exitOf(child)
  return {
    ...{ id, generation, closed, info: { host: hostname() }, spoke: false, tasks: 0 },
    ...{ onDrain: nothing, onFrame: nothing, pause: nothing, resume: nothing, kill: nothing, killFor: nothing },
    ...{ keepAlive: nothing, send: () => true, takeBeats: () => 1 },
  }
}

function exitOf(child: ChildProcess): Promise<{ code: number | null; signal: string | null; reason?: string }> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
    child.once('error', (error) =>
      resolve({ code: null, signal: null, reason: `the process could not be started: ${error.message}` }),
    )
  })
}

/**
 * Reads what an ended worker has sent. A process that a task started may have inherited the streams and hold them open: they are
 * closed if nothing came for a while, and in any case after some time.
 */
async function readToEnd(streams: readonly Socket[]): Promise<void> {
  let read = 0
  let checks = 0
  const timer = setInterval(() => {
    // The driver is busy: what has come is still to be read.
    if (streams.some((stream) => stream.isPaused())) return
    const before = read
    read = streams.reduce((sum, stream) => sum + stream.bytesRead, 0)
    if (++checks > MAX_HELD_CHECKS || read === before) for (const stream of streams) stream.destroy()
  }, HELD_CHECK_MS)
  await Promise.all(streams.map(ended))
  clearInterval(timer)
}

/** The end of a stream, with all of its data read. */
const ended = (stream: Socket): Promise<void> =>
  new Promise((resolve) => (stream.closed ? resolve() : stream.once('close', () => resolve())))

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Already gone.
  }
}
