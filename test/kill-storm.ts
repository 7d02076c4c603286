import { randomUUID } from 'node:crypto'
import { appendFileSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RunConfig, Runners, type TaskResponse } from '../dist/index.js'
import { seeded } from '../src/random.ts'
import { type StormTask, stormAnswer, stormed } from './agents/kill-storm.ts'
import { startNode } from './nodes/daemon.ts'
import { pids, signal } from './process-tree.ts'

/**
 * Kills workers of a run from outside, with SIGKILL, while tasks that harm nobody run. No kill hits a task that was hit before,
 * so no task may be charged.
 *
 * A task is hit if it had started in the worker that is killed, and had no answer yet. Tasks note their start in a file; a
 * worker is stopped (SIGSTOP) before it is judged, so that nothing starts in between.
 */
export interface StormOptions {
  readonly engine: 'local' | 'nodes' | 'ray' | 'spark'
  readonly kills: number
  readonly seed: number
  /** More of a RunConfig: the address of a cluster, `workerNum`, `concurrency`. */
  readonly config?: RunConfig
  /** Between two kills, on average. */
  readonly everyMs?: number
  /** The storm is given up, and its tasks count as lost, if nothing was answered for so long. */
  readonly stalledMs?: number
  readonly log?: (line: string) => void
}

export interface StormReport {
  readonly engine: string
  readonly seed: number
  readonly kills: number
  /** Kills of workers that ran no task; that had been stopped for a while; that ran several tasks. */
  readonly idle: number
  readonly stopped: number
  readonly several: number
  readonly tasks: number
  /** Starts of tasks beyond the first: what the kills have cost. */
  readonly reruns: number
  readonly seconds: number
  // What must be empty.
  readonly lost: string[]
  readonly twice: string[]
  readonly wronglyCharged: string[]
  /** Answers that are neither right nor a charge. */
  readonly wrong: string[]
  readonly leftBehind: string[]
}

/** In the environment of each worker of a storm. */
const MARK = 'MANYWORLDS_KILL_STORM'
/** Not what starts Node on Ray, whose arguments name both. */
const WORKER = /^[^\0]*\bnode\0.*(\/worker\/boot\.js|manyworlds\.bundle\.mjs)/s
const GONE_WITHIN_MS = 20_000
const LARGEST_BYTES = 3_000_000

export async function killStorm(options: StormOptions): Promise<StormReport> {
  const folder = mkdtempSync(join(tmpdir(), 'mw-kill-storm-'))
  const storm = new KillStorm(options, join(folder, 'ledger'))
  try {
    return await storm.run()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

class KillStorm {
  readonly #options: StormOptions
  readonly #ledger: Ledger
  readonly #mark = randomUUID()
  readonly #random: () => number
  readonly #answered = new Map<string, number>()
  readonly #given = new Map<string, StormTask & { never: boolean }>()
  /** Tasks that were hit by a kill. */
  readonly #hit = new Set<string>()
  readonly #killed = new Set<number>()
  readonly #problems = { twice: [] as string[], wronglyCharged: [] as string[], wrong: [] as string[] }
  readonly #counts = { kills: 0, idle: 0, stopped: 0, several: 0 }
  #answeredAt = Date.now()
  #over = false

  constructor(options: StormOptions, ledger: string) {
    this.#options = options
    this.#ledger = new Ledger(ledger)
    this.#random = seeded(options.seed)
  }

  async run(): Promise<StormReport> {
    const { engine, seed, kills, config, stalledMs = 60_000, log } = this.#options
    const began = Date.now()
    const nodes = engine === 'nodes' ? await Promise.all([startNode(), startNode()]) : []
    const abort = new AbortController()
    const killing = this.#kill()
    const watch = setInterval(() => {
      if (Date.now() - this.#answeredAt > stalledMs) abort.abort()
    }, 1000)
    const say = setInterval(() => log?.(`${this.#counts.kills} kills, ${this.#answered.size} answers`), 10_000)
    try {
      for await (const response of Runners.streamTask(this.#tasks(), {
        engineName: engine,
        workerNum: 4,
        concurrency: 2,
        store: false,
        signal: abort.signal,
        ...config,
        ...(nodes.length > 0 && { nodes: { addresses: nodes.map(({ address }) => address) } }),
        env: { ...config?.env, [MARK]: this.#mark },
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
    this.#ledger.read()
    for (const [id, { never }] of this.#given)
      if (never && (this.#ledger.starts.get(id) ?? 0) > 1) this.#problems.twice.push(`${id} (never) started twice`)
    if (this.#counts.kills < kills) this.#problems.wrong.push(`only ${this.#counts.kills} of ${kills} kills`)
    return {
      ...{ engine, seed, ...this.#counts, tasks: this.#given.size },
      reruns: [...this.#ledger.starts.values()].reduce((sum, starts) => sum + starts - 1, 0),
      seconds: Math.round((Date.now() - began) / 1000),
      lost: [...this.#given.keys()].filter((id) => !this.#answered.has(id)),
      ...this.#problems,
      leftBehind,
    }
  }

  /** Tasks until the last kill. */
  *#tasks() {
    // Of their own, so that the tasks do not depend on when the kills happen.
    const random = seeded(this.#options.seed + 1)
    while (!this.#over && this.#counts.kills < this.#options.kills) {
      const id = `t${this.#given.size}`
      const at = random()
      const kind = at < 0.1 ? 'parent' : at < 0.25 ? 'large' : at < 0.6 ? 'sleep' : 'quick'
      const never = random() < 0.05
      const input: StormTask = {
        ...{ kind, ledger: this.#ledger.path, ms: 10 + Math.floor(150 * random()) },
        bytes: kind === 'large' ? Math.ceil(LARGEST_BYTES * random()) : 20,
      }
      this.#given.set(id, { ...input, never })
      yield stormed.task(input, { id, ...(never && { rerun: 'never' }) })
    }
  }

  #judge(response: TaskResponse<string>): void {
    const { id, status, attempts } = response
    this.#answeredAt = Date.now()
    const times = (this.#answered.get(id) ?? 0) + 1
    this.#answered.set(id, times)
    if (times > 1) this.#problems.twice.push(`${id} was answered ${times} times`)
    const { kind, bytes, never } = this.#given.get(id)!
    this.#ledger.read()
    const hit = this.#hit.has(id) ? 'hit once' : 'never hit'
    const starts = this.#ledger.starts.get(id) ?? 0
    const about = `${id} (${never ? 'never, ' : ''}${kind}, ${hit}, ${starts} starts) is ${status} after ${attempts} attempts: ${response.error?.message}`
    // Its contract: if its worker dies after the driver has let it start, it is answered `crashed`, guilty or not.
    if (status === 'crashed' && never && this.#killed.has(response.worker?.pid ?? 0)) return
    if (status === 'crashed' || attempts > 1 || response.error?.message.startsWith('sub-task '))
      this.#problems.wronglyCharged.push(about)
    else if (response.answer !== stormAnswer(id, bytes)) this.#problems.wrong.push(about)
  }

  async #kill(): Promise<void> {
    const { kills, everyMs = 100 } = this.#options
    while (this.#counts.kills < kills && !this.#over) {
      await sleep(2 * everyMs * this.#random())
      const workers = this.#workers()
      const pid = workers[Math.floor(workers.length * this.#random())]!
      // If no worker can start, the run fails, and rightly so: one other must be at work.
      this.#ledger.read()
      if (this.#over || !workers.some((other) => other !== pid && this.#ledger.startedIn.has(other))) continue
      signal(pid, 'SIGSTOP')
      // The signal is delivered when the process is next scheduled.
      while (stateOf(pid) === 'R') await sleep(1)
      const running = this.#runningIn(pid)
      if (running.some((id) => this.#hit.has(id))) {
        signal(pid, 'SIGCONT')
        continue
      }
      // It may be given tasks meanwhile, which it does not start.
      const stopped = this.#random() < 0.3
      if (stopped) await sleep(500 * this.#random())
      signal(pid, 'SIGKILL')
      this.#killed.add(pid)
      for (const id of running) this.#hit.add(id)
      this.#counts.kills++
      if (running.length === 0) this.#counts.idle++
      if (running.length > 1) this.#counts.several++
      if (stopped) this.#counts.stopped++
    }
  }

  /** Tasks that have started in this process and that nobody has an answer of. */
  #runningIn(pid: number): string[] {
    this.#ledger.read()
    return [...(this.#ledger.startedIn.get(pid) ?? [])].filter((id) => {
      const [top] = id.split('/')
      return !this.#answered.has(top!) && !this.#ledger.got.has(id)
    })
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
      const [what, id, pid] = line.split(' ') as [string, string, string]
      if (what === 'got') this.got.add(id)
      else {
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
