import { crc32 } from 'node:zlib'
import { toPython } from './python-json.ts'
import { type Operation, ProgramEnded, type PythonProgram } from './python-program.ts'
import { crashed, raised, worldError } from './world-errors.ts'
import { MAX_UNCHARGED, type WorldServer } from './world-server.ts'

/** Actions of an episode that are kept, to be done again. */
const MAX_KEPT_CHARS = 16 * 1024 * 1024

/**
 * An episode in a Python process. If that dies while something else was executing there, the episode is brought to where it was in the
 * next process: the same reset with the same seed, then the same actions. What the world says to them must be the same as before.
 */
export class PythonEpisode {
  readonly #server: WorldServer
  readonly #name: string
  readonly #limitMs: number
  readonly #log: (line: string) => void
  readonly #number: number
  /** The process that it is in. */
  #program: PythonProgram | undefined
  /** How often it has been answered: the reset, then a step each. */
  #place = 0
  /** What was asked, for another time; undefined: it was too much to keep. And a checksum of the answers. */
  #asked: string[] | undefined = []
  #askedChars = 0
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

  /** Rejects with ACTION_INVALID if the action cannot be sent to Python, or is none of this world. */
  async step(action: unknown): Promise<string> {
    let body: string
    try {
      body = toPython(action)
    } catch (error) {
      throw worldError(
        'ACTION_INVALID',
        `${this.#where(this.#place)}: the action is no plain data: ${(error as Error).message}`,
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

  /** Throws if the process died of this episode, or has died too often. */
  #judge(error: unknown, place: number): void {
    if (!(error instanceof ProgramEnded)) throw error
    const { end, guilty } = error
    if (guilty) throw crashed(this.#where(place), end)
    if (end.executing === 0 && ++this.#died > MAX_UNCHARGED) {
      const times = `the Python process died ${this.#died} times during this episode, and nothing was executing there`
      throw worldError('WORLD_CRASHED', `${times}; at last it ${end.how} before ${this.#where(place)}`)
    }
  }

  async #replay(program: PythonProgram): Promise<void> {
    const died = `the Python process ${this.#program?.end?.how ?? 'ended'} while no step of '${this.#name}' was executing`
    if (this.#asked === undefined)
      throw worldError(
        'WORLD_CRASHED',
        `${died}; its ${this.#place - 1} actions are too many to be done again in a new one`,
      )
    this.#log(`${died}; it goes on in a new one, from its seed`)
    const answers = await allOf(this.#asked.map((body, place) => this.#request(program, place, body)))
    const checksum = answers.reduce((sum, text) => crc32(text, sum), 0)
    if (checksum === this.#checksum && !this.#closed) return
    program.closeEpisode(this.#number)
    throw worldError(
      'WORLD_NOT_DETERMINISTIC',
      `${died}, and it cannot go on in a new one: with the same seed and the same ${this.#place - 1} actions it did not do the same again. A world that draws numbers without its seed cannot be resumed`,
    )
  }

  #where(place: number): string {
    return `${place === 0 ? 'reset' : `step ${place - 1}`} of '${this.#name}'`
  }
}

/** All answers, or the worst of what went wrong: one of them may have been executing when the process died. */
async function allOf(requests: readonly Promise<string>[]): Promise<string[]> {
  const settled = await Promise.allSettled(requests)
  const failed = settled.filter((one) => one.status === 'rejected').map((one): unknown => one.reason)
  if (failed.length > 0) throw failed.find((error) => error instanceof ProgramEnded && error.guilty) ?? failed[0]
  return settled.map((one) => (one as PromiseFulfilledResult<string>).value)
}
