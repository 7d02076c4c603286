import { randomUUID } from 'node:crypto'
import { appendFileSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeEngine } from '../../dist/engines/make-engine.js'
import { type RunConfig, Runners, type TaskResponse } from '../../dist/index.js'
import type { WorkerExit } from '../../src/engines/engine.ts'
import { seeded } from '../../src/random.ts'
import { type StormTask, stormAnswer, stormed, stormedSetup } from '../agents/kill-storm.ts'
import { startNode } from '../nodes/daemon.ts'
import { type TappedWorker, tapEngine } from '../support/link-tap.ts'
import { pids, signal } from '../support/process-tree.ts'

/**
 * Kills workers of a run from outside, with SIGKILL, while tasks that harm nobody run. A task may be charged only if kills hit
 * it twice for each charge; with `rerun: 'never'`, only if a kill hit it.
 *
 * A kill hits a task that had begun in the worker and had no answer. It had begun if
 * - its body noted that in a file, the ledger; or
 * - the worker told the driver so, or the driver allowed it, in a frame that passed the link before the driver learned that the
 *   worker was gone. The start of a suspect is announced before its body, or the setup for it, runs.
 * Nothing else can tell the driver that a task has begun. So a right charge always has two hits, and a charge with two hits is
 * right. The frames are read by the storm itself: a driver that confuses leases is found out.
 *
 * A storm avoids tasks that were hit before, unless `again` is given. For that, a worker is stopped (SIGSTOP) before it is
 * judged, so that nothing starts in between.
 */
export interface StormOptions {
  readonly engine: 'local' | 'nodes' | 'ray' | 'spark'
  readonly kills: number
  readonly seed: number
  /** More of a RunConfig: the address of a cluster, `workerNum`, `concurrency`. */
  readonly config?: RunConfig
  /** Between two kills, on average. */
  readonly everyMs?: number
  /** The share of kills that are to hit a task again. Then charges are expected. Default: 0. */
  readonly again?: number
  /** The storm is given up, and its tasks count as lost, if nothing was answered for so long. */
  readonly stalledMs?: number
  readonly log?: (line: string) => void
}

export interface StormReport {
  readonly engine: string
  readonly seed: number
  readonly kills: number
  /** Kills that hit a task; that hit several; that hit one only between its announcement and its body. */
  readonly busy: number
  readonly several: number
  readonly announced: number
  /** Kills of workers that had been stopped for a while; that held a task that was hit before and had not begun here. */
  readonly stopped: number
  readonly held: number
  readonly tasks: number
  /** Starts of tasks beyond the first: what the kills have cost. */
  readonly reruns: number
  readonly seconds: number
  /** Tasks that were hit more than once; and those that were charged for that. */
  readonly hitAgain: number
  readonly rightlyCharged: string[]
  // What must be empty.
  readonly lost: string[]
  readonly twice: string[]
  readonly wronglyCharged: string[]
  /** Answers that are neither right nor a charge; workers that ended although nobody killed them. */
  readonly wrong: string[]
  readonly leftBehind: string[]
}

/** In the environment of each worker of a storm. */
const MARK = 'MANYWORLDS_KILL_STORM'
/** Not what starts Node on Ray, whose arguments name both. */
const WORKER = /^[^\0]*\bnode\0.*(\/worker\/boot\.js|manyworlds\.bundle\.mjs)/s
const GONE_WITHIN_MS = 20_000
const LARGEST_BYTES = 3_000_000
/** This share of the kills takes any worker, also one that is idle or starts. All others take workers that run tasks. */
const ANY_WORKER = 0.2
/** What a stopped worker has sent is with the driver after this time, as a rule. */
const ARRIVES_MS = 100
const STOPS_WITHIN_MS = 2000

export async function killStorm(options: StormOptions): Promise<StormReport> {
  const folder = mkdtempSync(join(tmpdir(), 'mw-kill-storm-'))
  const storm = new KillStorm(options, join(folder, 'ledger'))
  try {
    return await storm.run()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Kill {
  readonly stopped: boolean
  readonly held: boolean
  /** How many tasks had noted their start; the tasks that had begun. */
  readonly started: number
  readonly begun: Set<string>
}

interface Judged {
  readonly id: string
  readonly status: string
  readonly attempts: number
}

class KillStorm {
  readonly #options: StormOptions
  readonly #ledger: Ledger
  readonly #mark = randomUUID()
  readonly #random: () => number
  readonly #answered = new Map<string, number>()
  readonly #given = new Map<string, StormTask & { never: boolean }>()
  /** The workers that were killed while this task ran there, by pid. */
  readonly #hits = new Map<string, Set<number>>()
  readonly #killed = new Map<number, Kill>()
  readonly #tapped = new Set<TappedWorker>()
  readonly #rightlyCharged = new Set<string>()
  readonly #problems = { twice: [] as string[], wronglyCharged: [] as string[], wrong: [] as string[] }
  #answeredAt = Date.now()
  #over = false

  constructor(options: StormOptions, ledger: string) {
    this.#options = options
    this.#ledger = new Ledger(ledger)
    this.#random = seeded(options.seed)
  }

  async run(): Promise<StormReport> {
    const { engine, seed, kills, config = {}, stalledMs = 120_000, log } = this.#options
    const began = Date.now()
    const nodes = engine === 'nodes' ? await Promise.all([startNode(), startNode()]) : []
    const abort = new AbortController()
    const killing = this.#kill()
    const watch = setInterval(() => {
      if (Date.now() - this.#answeredAt > stalledMs) abort.abort()
    }, 1000)
    const say = setInterval(() => log?.(`${this.#killed.size} kills, ${this.#answered.size} answers`), 10_000)
    const { inLocal, ray, spark, ...others } = config
    const places = nodes.length > 0 && { nodes: { addresses: nodes.map(({ address }) => address) } }
    const workerNum = config.workerNum ?? 4
    const place = { engineName: engine, inLocal, workerNum, ray, spark, ...places }
    try {
      for await (const response of Runners.streamTask(this.#tasks(), {
        cls: () => tapEngine(makeEngine(place), this.#tap),
        workerNum,
        concurrency: 3,
        store: false,
        signal: abort.signal,
        ...others,
        env: { ...config.env, [MARK]: this.#mark },
      }))
        this.#judge(response)
    } finally {
      this.#over = true
      clearInterval(watch)
      clearInterval(say)
      await killing
      await Runners.shutdown()
      await Promise.all(nodes.map((node) => node.kill('SIGTERM')))
    }
    const leftBehind = await this.#left()
    this.#read()
    for (const [id, { never }] of this.#given)
      if (never && (this.#ledger.starts.get(id) ?? 0) > 1) this.#problems.twice.push(`${id} (never) started twice`)
    if (this.#killed.size < kills) this.#problems.wrong.push(`only ${this.#killed.size} of ${kills} kills`)
    return {
      ...{ engine, seed, kills: this.#killed.size, ...this.#counts(), tasks: this.#given.size },
      reruns: [...this.#ledger.starts.values()].reduce((sum, starts) => sum + starts - 1, 0),
      seconds: Math.round((Date.now() - began) / 1000),
      hitAgain: [...this.#hits.values()].filter(({ size }) => size > 1).length,
      rightlyCharged: [...this.#rightlyCharged],
      lost: [...this.#given.keys()].filter((id) => !this.#answered.has(id)),
      ...this.#problems,
      leftBehind,
    }
  }

  /** Tasks until the last kill. */
  *#tasks() {
    // Of their own, so that the tasks do not depend on when the kills happen.
    const random = seeded(this.#options.seed + 1)
    while (!this.#over && this.#killed.size < this.#options.kills) {
      const id = `t${this.#given.size}`
      const at = random()
      const kind = at < 0.1 ? 'parent' : at < 0.25 ? 'large' : at < 0.35 ? 'setup' : at < 0.85 ? 'sleep' : 'quick'
      const never = random() < 0.05
      const input: StormTask = {
        ...{ kind, ledger: this.#ledger.path, ms: 10 + Math.floor(400 * random()) },
        bytes: kind === 'large' ? Math.ceil(LARGEST_BYTES * random()) : 20,
      }
      this.#given.set(id, { ...input, never })
      yield (kind === 'setup' ? stormedSetup : stormed).task(input, { id, ...(never && { rerun: 'never' }) })
    }
  }

  // ---- what became of the tasks

  #judge(response: TaskResponse<string>): void {
    const { id } = response
    this.#answeredAt = Date.now()
    const times = (this.#answered.get(id) ?? 0) + 1
    this.#answered.set(id, times)
    if (times > 1) this.#problems.twice.push(`${id} was answered ${times} times`)
    this.#read()
    const { bytes } = this.#given.get(id)!
    this.#judgeCharges(response, response.error?.message)
    if (response.status !== 'crashed' && response.answer !== stormAnswer(id, bytes))
      this.#problems.wrong.push(`${id} is ${response.status}: ${response.error?.message}`)
  }

  /** Reads the ledger, and judges the sub-tasks that it tells of. */
  #read(): void {
    this.#ledger.read()
    for (const one of this.#ledger.responses.splice(0)) {
      this.#judgeCharges(one, 'a sub-task')
      if (one.status !== 'success' && one.status !== 'crashed') this.#problems.wrong.push(`${one.id} is ${one.status}`)
    }
  }

  #judgeCharges({ id, status, attempts }: Judged, message: string | undefined): void {
    const charges = status === 'success' ? attempts - 1 : attempts
    if (charges === 0) return
    const { kind, never = false } = this.#given.get(id) ?? { kind: 'sub-task' }
    const hits = this.#hits.get(id)?.size ?? 0
    const starts = this.#ledger.starts.get(id) ?? 0
    const about = `${id} (${never ? 'never, ' : ''}${kind}, ${hits} hits, ${starts} starts) is ${status} after ${attempts} attempts: ${message}`
    // The contract of `rerun: 'never'`: if its worker dies after the driver has let it start, it is answered `crashed`.
    const isRight = hits >= (never ? 1 : 2 * charges)
    if (!isRight) this.#problems.wronglyCharged.push(about)
    else if (!never) this.#rightlyCharged.add(about)
  }

  // ---- kills

  async #kill(): Promise<void> {
    const { kills, everyMs = 100, again: share = 0 } = this.#options
    const roll = () => ({ anyWorker: this.#random() < ANY_WORKER, hitAgain: this.#random() < share })
    for (let choice = roll(); this.#killed.size < kills && !this.#over; ) {
      await sleep(2 * everyMs * this.#random())
      const { anyWorker, hitAgain } = choice
      const isTarget = (pid: number) => this.#isTarget(pid, hitAgain)
      this.#read()
      const workers = this.#workers()
      const again = hitAgain ? workers.filter((one) => this.#runsHit(one)) : []
      const targets = again.length > 0 ? again : anyWorker ? workers : workers.filter(isTarget)
      const pid = targets[Math.floor(targets.length * this.#random())]
      // If no worker can start, the run fails, and rightly so: one other must be at work.
      const otherWorks = workers.some((other) => other !== pid && this.#ledger.startedIn.has(other))
      if (this.#over || pid === undefined || !otherWorks) continue
      const mayDie = (await this.#stop(pid, hitAgain)) && (anyWorker || isTarget(pid))
      if (!mayDie) {
        signal(pid, 'SIGCONT')
        continue
      }
      // It may be given tasks meanwhile, which it does not start.
      const stopped = this.#random() < 0.3
      if (stopped) await sleep(500 * this.#random())
      this.#read()
      const held = this.#held(pid).some(([id]) => this.#isHit(id) && !this.#begunIn(pid).has(id))
      this.#killed.set(pid, { stopped, held, started: this.#startedIn(pid).length, begun: new Set() })
      this.#hit(pid)
      signal(pid, 'SIGKILL')
      // Only now: otherwise most kills would take workers that are idle, because those are easier to find.
      choice = roll()
    }
  }

  /** Stops a worker. False: it runs a task that was hit before, or it is gone. */
  async #stop(pid: number, hitAgain: boolean): Promise<boolean> {
    signal(pid, 'SIGSTOP')
    // The signal is delivered when the process is next scheduled.
    for (const until = Date.now() + STOPS_WITHIN_MS; stateOf(pid) !== 'T'; await sleep(1))
      if (Date.now() > until || !/[RSDT]/.test(stateOf(pid) ?? '')) return false
    if (hitAgain) return true
    // Has the worker announced it? The driver would know only after it has read that.
    if (this.#held(pid).some(([id]) => this.#isHit(id))) await sleep(ARRIVES_MS)
    this.#read()
    return !this.#runsHit(pid)
  }

  #isTarget(pid: number, hitAgain: boolean): boolean {
    return this.#begunIn(pid).size > 0 && (hitAgain || !this.#runsHit(pid))
  }

  #runsHit(pid: number): boolean {
    return [...this.#begunIn(pid)].some((id) => this.#isHit(id))
  }

  #isHit(id: string): boolean {
    return this.#hits.has(id)
  }

  /** Notes the tasks that this kill hits, as far as they are known. */
  #hit(pid: number): void {
    const kill = this.#killed.get(pid)!
    for (const id of this.#begunIn(pid)) {
      kill.begun.add(id)
      const hits = this.#hits.get(id)
      if (hits) hits.add(pid)
      else this.#hits.set(id, new Set([pid]))
    }
  }

  readonly #tap = {
    opened: (worker: TappedWorker) => void this.#tapped.add(worker),
    closed: (worker: TappedWorker, exit: WorkerExit) => {
      const { pid, ended } = worker
      // Frames that the driver has read since the kill count, too.
      if (pid !== undefined && this.#killed.has(pid)) this.#hit(pid)
      else if (!ended && !this.#over)
        this.#problems.wrong.push(`worker ${pid} ended by itself: ${JSON.stringify(exit)}`)
      this.#tapped.delete(worker)
    },
  }

  /** Tasks that have begun in this process and that nobody has an answer of. */
  #begunIn(pid: number): Set<string> {
    const begun = this.#held(pid).filter(([, hasBegun]) => hasBegun)
    return new Set([...this.#startedIn(pid), ...begun.map(([id]) => id)])
  }

  /** Of these, the ones whose body has begun. */
  #startedIn(pid: number): string[] {
    return [...(this.#ledger.startedIn.get(pid) ?? [])].filter((id) => this.#isOpen(id))
  }

  /** Tasks that this process was given, and whether a frame says that they have begun. */
  #held(pid: number): [id: string, begun: boolean][] {
    const worker = [...this.#tapped].find((one) => one.pid === pid)
    if (!worker) return []
    const all = [...worker.held].map(([lease, id]): [string, boolean] => [id, worker.begun.has(lease)])
    return all.filter(([id]) => this.#isOpen(id))
  }

  /** It has no answer, or its parent does not know the answer. */
  #isOpen(id: string): boolean {
    const [top] = id.split('/')
    return !this.#answered.has(top!) && !this.#ledger.got.has(id)
  }

  #counts(): Pick<StormReport, 'busy' | 'several' | 'announced' | 'stopped' | 'held'> {
    const count = (is: (kill: Kill) => boolean) => [...this.#killed.values()].filter(is).length
    return {
      busy: count(({ begun }) => begun.size > 0),
      several: count(({ begun }) => begun.size > 1),
      announced: count(({ begun, started }) => begun.size > 0 && started === 0),
      stopped: count(({ stopped }) => stopped),
      held: count(({ held }) => held),
    }
  }

  #workers(): number[] {
    return pids().filter((pid) => WORKER.test(textOf(pid, 'cmdline')) && textOf(pid, 'environ').includes(this.#mark))
  }

  async #left(): Promise<string[]> {
    let left = this.#workers()
    for (const until = Date.now() + GONE_WITHIN_MS; left.length > 0 && Date.now() < until; left = this.#workers())
      await sleep(100)
    return left.map((pid) => `${pid} ${textOf(pid, 'cmdline').replaceAll('\0', ' ')}`)
  }
}

/** What tasks have noted. */
class Ledger {
  readonly path: string
  readonly starts = new Map<string, number>()
  readonly startedIn = new Map<number, Set<string>>()
  /** Sub-tasks whose parent has their answer. */
  readonly got = new Set<string>()
  /** The responses of sub-tasks; whoever reads them takes them out. */
  readonly responses: Judged[] = []
  #at = 0
  #rest = ''

  constructor(path: string) {
    this.path = path
    appendFileSync(path, '')
  }

  /** Reads what is new. */
  read(): void {
    if (!existsSync(this.path)) return
    const fd = openSync(this.path, 'r')
    const buffer = Buffer.alloc(64 * 1024)
    for (let bytes = 1; bytes > 0; this.#at += bytes) {
      bytes = readSync(fd, buffer, 0, buffer.length, this.#at)
      this.#rest += buffer.toString('latin1', 0, bytes)
    }
    closeSync(fd)
    const lines = this.#rest.split('\n')
    this.#rest = lines.pop()!
    for (const line of lines) {
      const [what, id, pid, status, attempts] = line.split(' ') as [string, string, string, string, string]
      if (what === 'got') {
        this.got.add(id)
        this.responses.push({ id, status, attempts: Number(attempts) })
      } else {
        this.starts.set(id, (this.starts.get(id) ?? 0) + 1)
        const ids = this.startedIn.get(Number(pid)) ?? new Set()
        this.startedIn.set(Number(pid), ids.add(id))
      }
    }
  }
}

function textOf(pid: number, name: 'cmdline' | 'environ' | 'stat'): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1')
  } catch {
    return ''
  }
}

/** `R`: it runs, `T`: it is stopped. */
const stateOf = (pid: number) => textOf(pid, 'stat').replace(/^.*\) /s, '')[0]
