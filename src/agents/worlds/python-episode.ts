import { crc32 } from 'node:zlib'
import { toPython } from './python-json.ts'
import { type Operation, ProgramEnded, type PythonProgram } from './python-program.ts'
import { crashed, raised, worldError } from './world-errors.ts'
import { MAX_UNRELATED_DEATHS, type WorldServer } from './world-server.ts'

/** Limit for the actions of an episode that are kept for a replay. */
const MAX_KEPT_CHARS = 16 * 1024 * 1024

/**
 * An episode in a Python process. If the process dies while another request was executing, the episode is replayed in the
 * next process: the same reset with the same seed, then the same actions. The answers must be the same as before.
 */
export class PythonEpisode {
  readonly #server: WorldServer
  readonly #name: string
  readonly #limitMs: number
  readonly #log: (line: string) => void
  readonly #number: number
  /** The process that the episode runs in. */
  #program: PythonProgram | undefined
  /** The number of answers so far: one for the reset and one per step. */
  #place = 0
  /** The requests so far, for a replay; undefined if they exceed the limit. */
  #asked: string[] | undefined = []
  #askedChars = 0
  /** A checksum of the answers. */
  #checksum = 0
  #died = 0
  #closed = false

  constructor(server: WorldServer, name: string, limitMs: number, log: (line: string) => void) {
    this.#server = server
    this.#name = name
    this.#limitMs = limitMs
    this.#log = log
    this.#number = server.newEpisode()
    server.enter()
  }

  reset(body: string): Promise<string> {
    return this.#ask(body)
  }

  /** Rejects with ACTION_INVALID if the action cannot be sent to Python or is not an action of this world. */
  async step(action: unknown): Promise<string> {
    let body: string
    try {
      body = toPython(action)
    } catch (error) {
      throw worldError(
        'ACTION_INVALID',
        `${this.#where(this.#place)}: the action is not plain data: ${(error as Error).message}`,
      )
    }
    return this.#ask(body)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#program?.closeEpisode(this.#number)
    this.#server.leave()
  }

  async #ask(body: string): Promise<string> {
    for (;;) {
      const place = this.#place
      try {
        const program = await this.#server.program(this.#log)
        if (place > 0 && program !== this.#program) await this.#replay(program)
        this.#program = program
        const text = await this.#request(program, place, body)
        if (text.startsWith('!')) throw raised(this.#where(place), text.slice(1))
        this.#keep(body, text)
        return text
      } catch (error) {
        this.#judge(error, place)
      }
    }
  }

  #keep(body: string, text: string): void {
    this.#place++
    this.#checksum = crc32(text, this.#checksum)
    this.#askedChars += body.length
    if (this.#askedChars > MAX_KEPT_CHARS) this.#asked = undefined
    this.#asked?.push(body)
  }

  #request(program: PythonProgram, place: number, body: string): Promise<string> {
    const operation: Operation = place === 0 ? 'reset' : 'step'
    return program.ask(operation, this.#number, body, this.#limitMs)
  }

  /** Throws if this episode made the process die, or if the process died too often. */
  #judge(error: unknown, place: number): void {
    if (!(error instanceof ProgramEnded)) throw error
    const { end, wasExecuting } = error
    if (wasExecuting) throw crashed(this.#where(place), end)
    if (end.executing === 0 && ++this.#died > MAX_UNRELATED_DEATHS) {
      const times = `the Python process died ${this.#died} times during this episode while no request was executing`
      throw worldError('WORLD_CRASHED', `${times}; the last time it ${end.how} before ${this.#where(place)}`)
    }
  }

  async #replay(program: PythonProgram): Promise<void> {
    const died = `the Python process ${this.#program?.end?.how ?? 'ended'} while no step of '${this.#name}' was executing`
    if (this.#asked === undefined)
      throw worldError(
        'WORLD_CRASHED',
        `${died}; its ${this.#place - 1} actions are too large to be replayed in a new process`,
      )
    this.#log(`${died}; replaying the episode from its seed in a new process`)
    const answers = await allOf(this.#asked.map((body, place) => this.#request(program, place, body)))
    const checksum = answers.reduce((sum, text) => crc32(text, sum), 0)
    if (checksum === this.#checksum && !this.#closed) return
    program.closeEpisode(this.#number)
    throw worldError(
      'WORLD_NOT_DETERMINISTIC',
      `${died}, and the episode cannot be replayed in a new process: the same seed and the same ${this.#place - 1} actions gave other results. A world with randomness outside its seed cannot be replayed`,
    )
  }

  #where(place: number): string {
    return `${place === 0 ? 'reset' : `step ${place - 1}`} of '${this.#name}'`
  }
}

/** Resolves to all answers. If requests failed, throws the error of the one that was executing, or else the first error. */
async function allOf(requests: readonly Promise<string>[]): Promise<string[]> {
  const settled = await Promise.allSettled(requests)
  const failed = settled.filter((one) => one.status === 'rejected').map((one): unknown => one.reason)
  if (failed.length > 0) throw failed.find((error) => error instanceof ProgramEnded && error.wasExecuting) ?? failed[0]
  return settled.map((one) => (one as PromiseFulfilledResult<string>).value)
}
