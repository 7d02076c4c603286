import { type StdioOptions, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import type { EngineEvents, Placement, RuntimeEngine, WorkerExit, WorkerLink } from 'manyworlds/engine'
import { frameReader, writeFrame } from 'manyworlds/engine'

const START_FAILURES = 3
const CHUNKS_KEPT = 16 // of stderr, and of what the watchdog says

/** Workers on this machine that leave it usable for others: each is started through `nice`. */
export class NiceEngine implements RuntimeEngine {
  readonly apiVersion = 1
  readonly name = 'nice'
  readonly #links = new Set<WorkerLink>()
  /** Stands for all handles, which are not allowed to keep the driver alive themselves. */
  readonly #alive = setInterval(() => {}, 2 ** 30).unref()
  #asked!: { placement: Placement; events: EngineEvents }
  #wanted = 0
  #failures = 0

  async start(placement: Placement, events: EngineEvents, signal: AbortSignal): Promise<void> {
    this.#asked = { placement, events }
    signal.addEventListener('abort', () => void this.stop(), { once: true })
    process.on('exit', this.#killAll)
    await this.scale(placement.workers)
  }

  async scale(workers: number): Promise<void> {
    this.#wanted = workers
    while (this.#links.size < this.#wanted) this.#startOne()
  }

  keepAlive(alive: boolean): void {
    this.#alive[alive ? 'ref' : 'unref']()
  }

  async stop(): Promise<void> {
    this.#wanted = 0
    this.#killAll()
    await Promise.all([...this.#links].map((link) => link.closed))
    process.off('exit', this.#killAll)
    clearInterval(this.#alive)
  }

  readonly #killAll = () => this.#links.forEach((link) => void link.kill())

  #startOne(): void {
    const { placement, events } = this.#asked
    const { link, frames } = startNicely(placement)
    const again = () => void this.scale(this.#wanted).catch((error) => events.failed(error))
    this.#links.add(link)
    void link.closed.then((exit) => {
      this.#links.delete(link)
      // Whoever ends is replaced; but workers that end before their first frame will not do better the next time.
      this.#failures = frames.bytesRead > 0 || this.#wanted === 0 ? 0 : this.#failures + 1
      if (this.#failures < START_FAILURES) setTimeout(again, 50 * this.#failures)
      else events.failed(new Error(`no worker starts: ${exit.reason ?? exit.stderr ?? exit.code}`))
    })
    events.link(link)
  }
}

/** One worker process: frames on fd 3, its watchdog on fd 4. It leads a process group, which is killed as one. */
function startNicely({ execArgv, workerEntry, cwd, env, output }: Placement) {
  const command = ['-n', '10', process.execPath, ...execArgv, workerEntry]
  const stdio: StdioOptions = ['ignore', output === 'show' ? 2 : 'ignore', 'pipe', 'pipe', 'pipe']
  const child = spawn('nice', command, { cwd, env, stdio, detached: true })
  const [stderr, frames, watchdog] = child.stdio.slice(2) as [Socket, Socket, Socket]
  for (const handle of [child, stderr, frames, watchdog]) handle.on('error', () => {}).unref()
  const kill = () => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {} // It is gone, or never was.
  }
  const [said, words]: [Buffer[], Buffer[]] = [[], []]
  stderr.on('data', (chunk) => said.push(chunk) > CHUNKS_KEPT && said.shift())
  watchdog.on('data', (chunk) => words.push(chunk) > CHUNKS_KEPT && words.shift())
  if (output === 'show') stderr.pipe(process.stderr, { end: false })
  const ended = [frames, watchdog].map((stream) => new Promise((resolve) => stream.once('close', resolve)))
  const exited = new Promise<WorkerExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
    child.once('error', ({ message }) => resolve({ code: null, signal: null, reason: message }))
  })
  const closed = Promise.all([exited, ...ended]).then(([exit]): WorkerExit => {
    kill() // What its tasks have started and left behind.
    const lastWords = /^[^!]*!(.*)\n/.exec(words.join(''))?.[1]
    return { ...exit, ...(said.length > 0 && { stderr: said.join('').trim() }), ...(lastWords && { lastWords }) }
  })
  const wire: Pick<WorkerLink, 'send' | 'onDrain' | 'onFrame' | 'pause' | 'resume'> = {
    send: (frame) => writeFrame(frames, frame),
    onDrain: (listener) => void frames.on('drain', listener),
    onFrame: (listener) => void frames.on('data', frameReader(listener, kill)),
    pause: () => void frames.pause(),
    resume: () => void frames.resume(),
  }
  const info = { host: hostname(), labels: ['nice'], ...(child.pid && { pid: child.pid }) }
  return { link: { id: `nice-${child.pid}`, generation: 0, info, closed, kill, ...wire }, frames }
}
