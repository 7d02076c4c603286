import { hostname } from 'node:os'
import { ManyworldsError } from '../../errors.ts'
import { carriedFile } from '../../python/carried-file.ts'
import { ensureEnvironment } from '../../python/environment.ts'
import { say } from '../../text/say.ts'
import { type WorldKind, worldNeeds } from './environment-needs.ts'
import { outsideTasks } from './outside-tasks.ts'
import { fromPython } from './python-json.ts'
import { type Operation, ProgramEnded, PythonProgram } from './python-program.ts'
import { crashed, raised, said, worldError } from './world-errors.ts'

/** A process that nobody has needed for so long is ended. */
const IDLE_MS = 60_000
/** How often one request is made again after a process died that nobody is charged with. */
export const MAX_UNCHARGED = 10

/** Where worlds run: an environment that is made when it is needed, or a Python of the user's. */
export interface PythonPlace {
  readonly kind: WorldKind
  readonly packages: readonly string[]
  readonly python: string | undefined
}

const servers = new Map<string, WorldServer>()

/** The one of this process for such a place. */
export function worldServer(place: PythonPlace): WorldServer {
  const key = JSON.stringify([place.kind, place.python, [...place.packages].sort()])
  let server = servers.get(key)
  if (server === undefined) servers.set(key, (server = new WorldServer(place)))
  return server
}

/** Keeps one Python process for all episodes of its worlds in this process: started when it is needed, and again if it dies. */
export class WorldServer {
  readonly #place: PythonPlace
  readonly #idleMs: number
  #starting: Promise<PythonProgram> | undefined
  #program: PythonProgram | undefined
  /** What was said while it was set up, for the log of the next episode. */
  #said: string[] = []
  #users = 0
  #idle: NodeJS.Timeout | undefined
  #episodes = 0

  constructor(place: PythonPlace, idleMs = IDLE_MS) {
    this.#place = place
    this.#idleMs = idleMs
  }

  newEpisode(): number {
    return ++this.#episodes
  }

  /** Whoever needs the process for a while says so, and when that is over. */
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

  /** Starts the process, if there is none. */
  async ready(): Promise<void> {
    this.enter()
    try {
      await this.#running()
    } finally {
      this.leave()
    }
  }

  /** The process. `log` gets what was said while it was set up. */
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

  /** For a request that is no episode's: made again if the process dies of something else. */
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
          if (error.guilty || ++died > MAX_UNCHARGED) throw crashed(where, error.end)
        }
      }
    } finally {
      this.leave()
    }
  }

  async #start(): Promise<PythonProgram> {
    const { kind } = this.#place
    try {
      const python = await this.#python()
      return await PythonProgram.start({ python, script: carriedFile('world_server.py').path, args: [kind] })
    } catch (error) {
      const here = `worlds of kind '${kind}' cannot run on ${hostname()}`
      if (error instanceof ProgramEnded)
        throw worldError('WORLD_UNAVAILABLE', `${here}: the Python process ${error.end.how}${said(error.end)}`)
      if (!ManyworldsError.is(error)) throw error
      throw worldError('WORLD_UNAVAILABLE', `${here}: ${error.message} [${error.code}]`, error)
    }
  }

  async #python(): Promise<string> {
    const { kind, packages, python } = this.#place
    if (python !== undefined) return python
    return ensureEnvironment(worldNeeds(kind, packages), (line) => {
      this.#said.push(line)
      say(line)
    })
  }
}
