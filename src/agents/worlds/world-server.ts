import { hostname } from 'node:os'
import { ManyworldsError } from '../../errors.ts'
import { carriedFile } from '../../python/carried-file.ts'
import { ensureEnvironment } from '../../python/environment.ts'
import { say } from '../../text/say.ts'
import { outsideTasks } from './outside-tasks.ts'
import { fromPython } from './python-json.ts'
import { type Operation, ProgramEnded, PythonProgram } from './python-program.ts'
import { crashed, raised, stderrNote, worldError } from './world-errors.ts'
import { type WorldKind, worldEnvSpec } from './world-packages.ts'

/** An idle process is ended after this time. */
const IDLE_MS = 60_000
/** How often a request is repeated after the process died for another reason. */
export const MAX_UNRELATED_DEATHS = 10

/** Where worlds run: in an environment that we set up, or with a Python of the user. */
export interface PythonRuntime {
  readonly kind: WorldKind
  readonly packages: readonly string[]
  readonly python: string | undefined
}

const servers = new Map<string, WorldServer>()

/** Returns the server of this process for this runtime. */
export function worldServer(runtime: PythonRuntime): WorldServer {
  const key = JSON.stringify([runtime.kind, runtime.python, [...runtime.packages].sort()])
  let server = servers.get(key)
  if (server === undefined) servers.set(key, (server = new WorldServer(runtime)))
  return server
}

/** Keeps one Python process for all episodes in this process. It is started when needed, and restarted if it dies. */
export class WorldServer {
  readonly #runtime: PythonRuntime
  readonly #idleMs: number
  #starting: Promise<PythonProgram> | undefined
  #program: PythonProgram | undefined
  /** Lines printed during the setup, for the log of the next episode. */
  #said: string[] = []
  #users = 0
  #idle: NodeJS.Timeout | undefined
  #episodes = 0

  constructor(runtime: PythonRuntime, idleMs = IDLE_MS) {
    this.#runtime = runtime
    this.#idleMs = idleMs
  }

  newEpisode(): number {
    return ++this.#episodes
  }

  /** Counts a user of the process, until `leave` is called. */
  enter(): void {
    this.#users++
    clearTimeout(this.#idle)
  }

  leave(): void {
    if (--this.#users > 0) return
    this.#idle = outsideTasks(() => setTimeout(() => this.#finish(), this.#idleMs).unref())
  }

  #finish(): void {
    this.#program?.finish()
    this.#program = undefined
  }

  /** Starts the process if it is not running. */
  async ready(): Promise<void> {
    this.enter()
    try {
      await this.#running()
    } finally {
      this.leave()
    }
  }

  /** Returns the process. `log` gets the lines printed during its setup. */
  async program(log: (line: string) => void = () => {}): Promise<PythonProgram> {
    const program = await this.#running()
    for (const line of this.#said.splice(0)) log(line)
    return program
  }

  async #running(): Promise<PythonProgram> {
    if (this.#program !== undefined && this.#program.end === undefined) return this.#program
    this.#starting ??= outsideTasks(() => this.#start()).finally(() => {
      this.#starting = undefined
    })
    this.#program = await this.#starting
    return this.#program
  }

  /** Makes a request that belongs to no episode. Repeats it if the process dies for another reason. */
  async ask(operation: Operation, body: string, where: string, limitMs: number): Promise<unknown> {
    this.enter()
    try {
      for (let died = 0; ; ) {
        try {
          const text = await (await this.program()).ask(operation, 0, body, limitMs)
          if (text.startsWith('!')) throw raised(where, text.slice(1))
          return fromPython(text)
        } catch (error) {
          if (!(error instanceof ProgramEnded)) throw error
          if (error.wasExecuting || ++died > MAX_UNRELATED_DEATHS) throw crashed(where, error.end)
        }
      }
    } finally {
      this.leave()
    }
  }

  async #start(): Promise<PythonProgram> {
    const { kind } = this.#runtime
    try {
      const python = await this.#python()
      return await PythonProgram.start({ python, script: carriedFile('world_server.py').path, args: [kind] })
    } catch (error) {
      const here = `cannot run worlds of kind '${kind}' on ${hostname()}`
      if (error instanceof ProgramEnded)
        throw worldError('WORLD_UNAVAILABLE', `${here}: the Python process ${error.end.how}${stderrNote(error.end)}`)
      if (!ManyworldsError.is(error)) throw error
      throw worldError('WORLD_UNAVAILABLE', `${here}: ${error.message} [${error.code}]`, error)
    }
  }

  async #python(): Promise<string> {
    const { kind, packages, python } = this.#runtime
    if (python !== undefined) return python
    return ensureEnvironment(worldEnvSpec(kind, packages), (line) => {
      this.#said.push(line)
      say(line)
    })
  }
}
