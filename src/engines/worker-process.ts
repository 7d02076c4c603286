import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import { isMarked } from '../protocol/split-wire.ts'
import { printableOutput } from '../redaction/unattributed.ts'
import { FDS_VARIABLE } from '../worker/role.ts'
import { compileCache } from './compile-cache.ts'
import type { Placement, WorkerExit, WorkerLink } from './engine.ts'
import { frameReader, writeFrame } from './frames.ts'
import { WatchdogReader } from './watchdog-reader.ts'

/** How much of a worker's stderr is kept for the error of its crash. */
const STDERR_CHARS = 4000

/** A link to a worker process on this machine. */
export interface ProcessLink extends WorkerLink {
  /** Whether a frame ever came: a process that ends without one could not start. */
  readonly spoke: boolean
  /** How many tasks it said it is running, with its last heartbeat. */
  readonly tasks: number
  /** Heartbeats since the last look. */
  takeBeats(): number
  keepAlive(alive: boolean): void
  /** Ends the process for a reason that the exit will carry. */
  killFor(reason: string): void
}

/** Everything alive, so that the driver's exit leaves nothing behind even if nobody stopped the engine. */
const alive = new Set<number>()
process.on('exit', () => {
  for (const pid of alive) killGroup(pid)
})

/**
 * Starts a worker: frames on fd 3, its watchdog on fd 4, and frames of its side thread on fd 5. It leads a process group of its own, so that what its tasks
 * start can be ended with it, and so that a Ctrl-C at the terminal reaches only the driver.
 */
export function startWorkerProcess(
  placement: Placement,
  id: string,
  generation: number,
  show: (text: Buffer) => void = (text) => void process.stderr.write(printableOutput(text)),
): ProcessLink {
  const child = spawn(process.execPath, [...placement.execArgv, placement.workerEntry], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
    cwd: placement.cwd,
    env: { ...compileCache(placement.env), ...placement.env, [FDS_VARIABLE]: '3,4,5' },
    detached: true,
  })
  // Without file descriptors left there is no stdio, and the error comes as an event.
  if (child.stdio?.[3] === undefined) return stillborn(child, id, generation)
  const frames = child.stdio[3] as Socket
  const watchdog = child.stdio[4] as unknown as Socket
  const side = (child.stdio as unknown as Socket[])[5]!
  const { pid } = child
  if (pid !== undefined) alive.add(pid)

  let beats = 0
  const heard = new WatchdogReader()
  let reason: string | undefined
  watchdog.setEncoding('utf8')
  watchdog.on('data', (text: string) => {
    beats++
    heard.hear(text)
  })
  const stderr = keepTail(child, placement.output === 'show' ? show : () => {})

  for (const stream of [frames, watchdog, side]) stream.on('error', () => {})
  const closed = Promise.all([exitOf(child), ended(frames), ended(side)]).then(([exit]): WorkerExit => {
    if (pid !== undefined) {
      killGroup(pid)
      alive.delete(pid)
    }
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
      for (const stream of [frames, side]) stream.on('data', frameReader(listener, kill))
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
    killFor(why) {
      reason ??= why
      kill()
    },
    takeBeats() {
      const taken = beats
      beats = 0
      return taken
    },
    keepAlive(wanted) {
      // All of them: the end of a worker is known when its streams are read to their ends, and the process must not
      // leave in between because it has nothing else to wait for.
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

/** The end of a stream, with all of its data read. */
const ended = (stream: Socket): Promise<void> => new Promise((resolve) => stream.once('close', () => resolve()))

/** What a worker prints outside of any task is dropped, or shown if the run asks for it; the end of stderr is kept for its crash. */
function keepTail(child: ChildProcess, show: (text: Buffer) => void): () => string {
  let tail = ''
  child.stdout?.on('data', show)
  child.stderr?.on('data', (chunk: Buffer) => {
    show(chunk)
    tail = (tail + chunk.toString()).slice(-STDERR_CHARS)
  })
  return () => tail.trim()
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Already gone.
  }
}
