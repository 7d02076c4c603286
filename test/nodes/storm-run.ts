import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { seeded } from '../../src/random.ts'
import { query } from '../store/store-folder.ts'
import { freePort } from '../support/free-port.ts'
import { childrenOf, signal } from '../support/process-tree.ts'
import { startDaemon, until } from './daemon.ts'
import type { DriverArgs, DriverReport } from './storm-driver.ts'
import { plan } from './storm-plan.ts'
import { marked, type StormProxy, startProxy } from './storm-processes.ts'

const DRIVER = fileURLToPath(new URL('storm-driver.ts', import.meta.url))
const MARK = 'NODES_STORM'

export interface StormOptions {
  readonly seed: number
  readonly tasks: number
  /** How long things happen. */
  readonly ms: number
  /** Between two things that happen, on average. */
  readonly everyMs: number
  /** All must be over so long after the last of them. */
  readonly calmMs: number
  readonly log: (line: string) => void
  /** More arguments for nodes, more of the driver's RunConfig, more of its `nodes`. */
  readonly nodeArgs?: readonly string[]
  readonly config?: object
  readonly nodes?: object
  /** Of what may happen, only this. */
  readonly only?: readonly string[]
}

export interface StormReport {
  /** Everything that should not have been. */
  readonly problems: string[]
  readonly happened: Readonly<Record<string, number>>
  readonly sessions: number
  readonly report: DriverReport | undefined
}

/** One node of the storm, through all its lives. */
interface StormNode {
  readonly name: string
  readonly args: readonly string[]
  readonly listens: boolean
  daemon: ReturnType<typeof startDaemon> | undefined
  /** Something is being done to it. */
  busy: boolean
  lives: number
}

export async function runStorm(options: StormOptions): Promise<StormReport> {
  const folder = mkdtempSync(join(tmpdir(), 'mw-storm-'))
  const storm = new Storm(options, folder)
  try {
    return await storm.run()
  } finally {
    await storm.end()
    rmSync(folder, { recursive: true, force: true })
  }
}

class Storm {
  readonly #options: StormOptions
  readonly #folder: string
  readonly #mark = randomUUID()
  readonly #random: () => number
  readonly #problems: string[] = []
  readonly #happened: Record<string, number> = {}
  /** What has begun and is not over. */
  readonly #under = new Set<Promise<void>>()
  readonly #nodes: StormNode[] = []
  #proxies: StormProxy[] = []
  #driver: ChildProcess | undefined
  #driverBusy = false
  #session = 0
  #output = ''
  #errors = ''
  /** Of the driver that came to its end. */
  #report: DriverReport | undefined
  #over = false
  #committed = new Set<string>()
  #startedAt = Date.now()

  constructor(options: StormOptions, folder: string) {
    this.#options = options
    this.#folder = folder
    this.#random = seeded(options.seed)
  }

  get #ledger(): string {
    return join(this.#folder, 'ledger')
  }

  get #file(): string {
    return join(this.#folder, 'store', 'store.sqlite')
  }

  async run(): Promise<StormReport> {
    const { ms, everyMs, calmMs, tasks } = this.#options
    const listen = await freePort()
    const ports = [await freePort(), await freePort()]
    this.#proxies = [await startProxy(ports[1]!), await startProxy(listen)]
    for (const [index, port] of ports.entries())
      this.#nodes.push(this.#makeNode(`n${index}`, ['--listen', `127.0.0.1:${port}`], true))
    this.#nodes.push(this.#makeNode('n2', ['--connect', `ws://127.0.0.1:${this.#proxies[1]!.port}`, '--stay'], false))
    await Promise.all(this.#nodes.map((node) => this.#startNode(node)))
    const addresses = [`127.0.0.1:${ports[0]}`, `127.0.0.1:${this.#proxies[0]!.port}`]
    const nodes = { addresses, listen: `127.0.0.1:${listen}`, ...this.#options.nodes }
    this.#startedAt = Date.now()
    this.#startDriver(nodes)
    for (const end = Date.now() + ms; Date.now() < end && !this.#over; ) {
      await sleep(2 * everyMs * this.#random())
      if (!this.#over) this.#happen()
    }
    await Promise.all(this.#under)
    this.#say('calm')
    for (const end = Date.now() + calmMs; Date.now() < end && !this.#over; ) await sleep(50)
    if (!this.#over) {
      const age = existsSync(this.#ledger) ? Date.now() - statSync(this.#ledger).mtimeMs : Number.NaN
      const state = `${this.#finals().size} of ${tasks} tasks are answered, the last start was ${Math.round(age)} ms ago`
      this.#problem(`the driver has not ended ${calmMs} ms after the last thing that happened: ${state}`)
    }
    if (this.#report !== undefined) this.#judge(tasks)
    await this.#stopNodes()
    return {
      problems: this.#problems,
      happened: this.#happened,
      sessions: this.#session,
      report: this.#report,
    }
  }

  /** Whatever came before, nothing is left. */
  async end(): Promise<void> {
    this.#over = true
    for (const { daemon } of this.#nodes) {
      if (daemon === undefined) continue
      for (const pid of [...childrenOf(daemon.pid), daemon.pid]) signal(pid, 'SIGKILL')
    }
    if (this.#driver?.pid !== undefined) this.#driver.kill('SIGKILL')
    for (const proxy of this.#proxies) proxy.close()
    await sleep(100)
  }

  #say(line: string): void {
    this.#options.log(`${((Date.now() - this.#startedAt) / 1000).toFixed(1)} s: ${line}`)
  }

  #problem(line: string): void {
    this.#say(`PROBLEM ${line}`)
    this.#problems.push(line)
  }

  // ---- nodes

  #makeNode(name: string, args: readonly string[], listens: boolean): StormNode {
    return { name, args, listens, daemon: undefined, busy: false, lives: 0 }
  }

  #temporary(node: StormNode): string {
    return join(this.#folder, 'tmp', `${node.name}-${node.lives}`)
  }

  async #startNode(node: StormNode): Promise<void> {
    node.lives++
    mkdirSync(this.#temporary(node), { recursive: true })
    const daemon = startDaemon({
      args: [
        ...node.args,
        ...['--workers', '2', '--cache-dir', join(this.#folder, `cache-${node.name}`), '--grace', '5s'],
        ...['--pass-env', `MANYWORLDS_TEST_RUN,NODE_COMPILE_CACHE,${MARK}`],
        ...(this.#options.nodeArgs ?? []),
      ],
      env: { ...process.env, ...this.#environment(this.#temporary(node)) },
    })
    node.daemon = daemon
    await until(daemon, node.listens ? /listens on/ : /joins the driver/)
  }

  #environment(temporary: string): NodeJS.ProcessEnv {
    return { [MARK]: this.#mark, TMPDIR: temporary, NODE_COMPILE_CACHE: join(this.#folder, 'compile-cache') }
  }

  /** An orderly end: with 0, in time, and without a trace. */
  async #stopNode(node: StormNode): Promise<void> {
    const daemon = node.daemon!
    node.daemon = undefined
    daemon.child.kill('SIGTERM')
    const ended = await Promise.race([daemon.exited, sleep(40_000, 'late' as const)])
    if (ended === 'late') {
      this.#problem(`${node.name} does not end after SIGTERM:\n${daemon.output()}`)
      for (const pid of [...childrenOf(daemon.pid), daemon.pid]) signal(pid, 'SIGKILL')
      await daemon.exited
      return
    }
    if (ended !== 0) this.#problem(`${node.name} ended with ${ended}:\n${daemon.output()}`)
    const left = readdirSync(this.#temporary(node))
    if (left.length > 0) this.#problem(`${node.name} left ${left.join(', ')} in its temporary folder`)
    if (/Error:|Warning:|^ +at /m.test(daemon.output())) this.#problem(`${node.name} said:\n${daemon.output()}`)
  }

  async #stopNodes(): Promise<void> {
    await Promise.all(this.#nodes.filter(({ daemon }) => daemon !== undefined).map((node) => this.#stopNode(node)))
    const isLeft = () => marked(`${MARK}=${this.#mark}`)
    for (const end = Date.now() + 30_000; Date.now() < end && isLeft().length > 0; ) await sleep(50)
    for (const line of isLeft()) this.#problem(`a process is left: ${line}`)
  }

  // ---- the driver

  #startDriver(nodes: object): void {
    this.#session++
    const { seed, tasks, config = {} } = this.#options
    const temporary = join(this.#folder, 'tmp', `driver-${this.#session}`)
    mkdirSync(temporary, { recursive: true })
    const args: DriverArgs = {
      ...{ seed, tasks, ledger: this.#ledger, session: this.#session, nodes, config },
      store: join(this.#folder, 'store'),
    }
    const driver = spawn(process.execPath, [DRIVER, JSON.stringify(args)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, VITEST: undefined, MANYWORLDS_STORE: undefined, ...this.#environment(temporary) },
    })
    this.#driver = driver
    this.#output = ''
    driver.stdout!.on('data', (text) => (this.#output += text))
    driver.stderr!.on('data', (text: Buffer) => {
      this.#errors += text
      for (const line of text.toString().trimEnd().split('\n')) this.#say(`driver ${this.#session}: ${line}`)
    })
    driver.once('close', (code) => this.#onDriverEnd(code, nodes, temporary))
  }

  #onDriverEnd(code: number | null, nodes: object, temporary: string): void {
    this.#checkLedger()
    this.#driver = undefined
    if (this.#over) return
    if (code === null) {
      // It was killed. Others take its run on, sooner or later.
      void sleep(500 * this.#random()).then(() => this.#over || this.#startDriver(nodes))
      return
    }
    this.#over = true
    if (code !== 0) return this.#problem(`the driver ended with ${code}:\n${this.#errors.slice(-4000)}`)
    this.#report = JSON.parse(this.#output) as DriverReport
    const left = readdirSync(temporary).filter((name) => name.startsWith('manyworlds'))
    if (left.length > 0) this.#problem(`the driver left ${left.join(', ')} in its temporary folder`)
  }

  /** What was committed when a session began was not run in it. */
  #checkLedger(): void {
    for (const [session, id] of this.#lines())
      if (session === String(this.#session) && this.#committed.has(id!))
        this.#problem(`session ${session} ran ${id} again`)
    this.#committed = this.#finals()
  }

  #lines(): string[][] {
    if (!existsSync(this.#ledger)) return []
    return readFileSync(this.#ledger, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' '))
  }

  #finals(): Set<string> {
    if (!existsSync(this.#file)) return new Set()
    if (query(this.#file, `SELECT 1 FROM sqlite_schema WHERE name = 'responses'`).length === 0) return new Set()
    const ids = query(this.#file, 'SELECT id FROM responses').map(({ id }) => String(id))
    // A parent that is tried again has its sub-tasks run again.
    return new Set(ids.filter((id) => !id.includes('/')))
  }

  #judge(tasks: number): void {
    const { answered, wrong } = this.#report!
    for (const line of wrong) this.#problem(line)
    if (answered !== tasks) this.#problem(`${answered} of ${tasks} tasks were answered`)
    const finals = query(this.#file, `SELECT id, count(*) AS n FROM responses WHERE id NOT LIKE '%/%' GROUP BY id`)
    if (finals.length !== tasks) this.#problem(`${finals.length} of ${tasks} tasks are in the run file`)
    for (const { id, n } of finals) if (n !== 1) this.#problem(`${id} has ${n} answers in the run file`)
    const never = plan(this.#options.seed, tasks, this.#ledger).filter(({ input }) => input.kind === 'never')
    const starts = new Map<string, number>()
    for (const [, id] of this.#lines()) starts.set(id!, (starts.get(id!) ?? 0) + 1)
    for (const { id } of never) {
      const count = starts.get(id) ?? 0
      if (count > 1) this.#problem(`${id} must never run twice, and was started ${count} times`)
    }
  }

  // ---- what happens

  #happen(): void {
    const things: Record<string, () => Promise<void> | undefined> = {
      killWorker: () => this.#killWorker(),
      killNode: () => this.#withNode((node) => this.#killNode(node)),
      stopNode: () => this.#withNode((node) => this.#pauseNode(node)),
      drainNode: () => this.#withNode((node) => this.#drainNode(node)),
      cut: () => this.#cut(),
      reset: () => this.#reset(),
      killDriver: () => this.#killDriver(),
      stopDriver: () => this.#pauseDriver(),
    }
    const names = Object.keys(things).filter((name) => this.#options.only?.includes(name) ?? true)
    const name = names[Math.floor(names.length * this.#random())]!
    const under = things[name]!()
    if (under === undefined) return
    this.#happened[name] = (this.#happened[name] ?? 0) + 1
    const done: Promise<void> = under
      .catch((error: Error) => this.#problem(`${name}: ${error.message}`))
      .finally(() => this.#under.delete(done))
    this.#under.add(done)
  }

  #withNode(act: (node: StormNode) => Promise<void>): Promise<void> | undefined {
    const idle = this.#nodes.filter((node) => !node.busy && node.daemon !== undefined)
    const node = idle[Math.floor(idle.length * this.#random())]
    if (node === undefined) return undefined
    node.busy = true
    return act(node).finally(() => {
      node.busy = false
    })
  }

  async #killNode(node: StormNode): Promise<void> {
    this.#say(`kill ${node.name}`)
    await node.daemon!.kill('SIGKILL')
    node.daemon = undefined
    await sleep(3000 * this.#random())
    await this.#startNode(node)
  }

  async #pauseNode(node: StormNode): Promise<void> {
    const ms = 1000 + 7000 * this.#random()
    this.#say(`stop ${node.name} for ${Math.round(ms)} ms`)
    const pids = [node.daemon!.pid, ...childrenOf(node.daemon!.pid)]
    for (const pid of pids) signal(pid, 'SIGSTOP')
    await sleep(ms)
    for (const pid of pids) signal(pid, 'SIGCONT')
  }

  async #drainNode(node: StormNode): Promise<void> {
    this.#say(`drain ${node.name}`)
    await this.#stopNode(node)
    await sleep(2000 * this.#random())
    await this.#startNode(node)
  }

  #killWorker(): Promise<void> {
    const workers = this.#nodes.flatMap(({ daemon }) => (daemon === undefined ? [] : childrenOf(daemon.pid)))
    const pid = workers[Math.floor(workers.length * this.#random())]
    if (pid !== undefined) {
      this.#say(`kill worker ${pid}`)
      signal(pid, 'SIGKILL')
    }
    return Promise.resolve()
  }

  async #cut(): Promise<void> {
    const proxy = this.#proxies[Math.floor(this.#proxies.length * this.#random())]!
    const ms = 500 + 5500 * this.#random()
    this.#say(`cut proxy ${this.#proxies.indexOf(proxy)} for ${Math.round(ms)} ms`)
    proxy.cut()
    await sleep(ms)
    proxy.mend()
  }

  #reset(): Promise<void> {
    const index = Math.floor(this.#proxies.length * this.#random())
    this.#say(`reset proxy ${index}`)
    this.#proxies[index]!.reset()
    return Promise.resolve()
  }

  #killDriver(): Promise<void> | undefined {
    if (this.#driver === undefined || this.#driverBusy) return undefined
    this.#say('kill the driver')
    this.#driver.kill('SIGKILL')
    return Promise.resolve()
  }

  #pauseDriver(): Promise<void> | undefined {
    return this.#driver === undefined || this.#driverBusy ? undefined : this.#pause(this.#driver)
  }

  async #pause(driver: ChildProcess): Promise<void> {
    const ms = 500 + 5500 * this.#random()
    this.#say(`stop the driver for ${Math.round(ms)} ms`)
    this.#driverBusy = true
    driver.kill('SIGSTOP')
    await sleep(ms)
    driver.kill('SIGCONT')
    this.#driverBusy = false
  }
}
