import type { EngineEvents, Placement, RuntimeEngine, WorkerExit, WorkerLink } from '../../src/engines/engine.ts'
import type { Budget } from '../../src/executor/budget.ts'
import { Dispatcher } from '../../src/executor/dispatcher.ts'
import type { Service } from '../../src/executor/service.ts'
import type { ReadyTask } from '../../src/executor/source.ts'
import { Channel } from '../../src/protocol/channel.ts'
import { checkDriverMessage } from '../../src/protocol/check-messages.ts'
import { CODECS } from '../../src/protocol/codec.ts'
import {
  type DriverMessage,
  OUTCOME,
  PROTOCOL_VERSION,
  type TaskItem,
  type WorkerMessage,
} from '../../src/protocol/messages.ts'
import { isMarked, splitWire } from '../../src/protocol/split-wire.ts'
import type { TaskLike, TaskResponse } from '../../src/task.ts'

/** Workers that do what a test says, behind the real executor: for what no worker of ours would say, or when. */

/** Agents are loaded at once, unless it answers false. */
type Receive = (message: DriverMessage, worker: ScriptedWorker) => unknown

export class ScriptedWorker implements WorkerLink {
  readonly id: string
  readonly generation: number
  readonly info: { readonly host: string; readonly labels?: readonly string[] }
  readonly closed: Promise<WorkerExit>
  readonly #channel: Channel<WorkerMessage, DriverMessage>
  /** The voice of its side thread. */
  readonly #side: Channel<WorkerMessage, DriverMessage>
  readonly #up: Delayed
  readonly #sideUp: Delayed
  readonly #down: Delayed
  #end!: (exit: WorkerExit) => void
  #toDriver: (frame: Uint8Array) => void = () => {}
  #toWorker!: (frame: Uint8Array) => void

  constructor(id: string, generation: number, receive: Receive, { delay, labels }: Options = {}) {
    this.id = id
    this.info = { host: 'nowhere', labels: labels?.(id) ?? [] }
    this.generation = generation
    this.closed = new Promise((resolve) => (this.#end = resolve))
    this.#up = new Delayed(delay)
    this.#sideUp = new Delayed(delay)
    this.#down = new Delayed(delay)
    const wires = splitWire({
      send: (frame: Uint8Array) => {
        // They have wires of their own: what one says may pass what the other has said.
        const wire = isMarked(frame) ? this.#sideUp : this.#up
        wire.later(() => this.#toDriver(frame))
        return true
      },
      onDrain: () => {},
      onFrame: (listener: (frame: Uint8Array) => void) => void (this.#toWorker = listener),
    })
    const understand = (message: DriverMessage) => {
      if (message.type === 'hello') for (const voice of [this.#channel, this.#side]) voice.speak(message.codec)
      const loads = receive(message, this) !== false
      if (message.type === 'agent' && loads) this.say({ type: 'loaded', agent: message.key })
    }
    const broken = (error: Error) => {
      throw error
    }
    this.#channel = new Channel(wires.main, checkDriverMessage, understand, broken)
    this.#side = new Channel(wires.side, checkDriverMessage, understand, broken)
  }

  say(message: WorkerMessage): void {
    this.#channel.post(message)
  }

  sayAside(message: WorkerMessage): void {
    this.#side.post(message)
  }

  answer([lease]: TaskItem, answer: unknown): void {
    this.say({ type: 'done', records: [], outcomes: [[lease, OUTCOME.success, answer, 1]] })
  }

  /** After what it has said, as far as that has arrived by then. */
  die(exit: Partial<WorkerExit> = {}): void {
    setImmediate(() => {
      for (const wire of [this.#up, this.#sideUp]) wire.end()
      this.#end({ code: null, signal: 'SIGSEGV', ...exit })
    })
  }

  kill(): void {
    this.die({ signal: 'SIGKILL' })
  }

  onDrain(): void {}
  pause(): void {}
  resume(): void {}
  onFrame(listener: (frame: Uint8Array) => void): void {
    this.#toDriver = listener
    this.#channel.control({ type: 'ready', protocol: PROTOCOL_VERSION, codecs: CODECS, node: '', pid: 0 })
  }
  send(frame: Uint8Array): boolean {
    this.#down.later(() => this.#toWorker(frame))
    return true
  }
}

/** Frames that take so many turns of the event loop each, one if nobody says otherwise; they keep their order. */
class Delayed {
  readonly #turns: () => number
  readonly #frames: (() => void)[] = []
  #moving = false
  #ended = false

  constructor(turns: (() => number) | undefined) {
    this.#turns = turns ?? (() => 1)
  }

  later(deliver: () => void): void {
    this.#frames.push(deliver)
    if (!this.#moving) this.#move(this.#turns())
  }

  end(): void {
    this.#ended = true
  }

  #move(turns: number): void {
    this.#moving = true
    setImmediate(() => {
      if (this.#ended) return
      if (turns > 1) return this.#move(turns - 1)
      // All of those that take no time go together.
      do this.#frames.shift()!()
      while (!this.#ended && this.#frames.length > 0 && (turns = this.#turns()) === 0)
      this.#moving = false
      if (this.#frames.length > 0) this.#move(turns)
    })
  }
}

/** Replaces workers that end. */
function scriptedEngine(receive: Receive, options: Options): RuntimeEngine {
  let generation = 0
  let stopped = false
  const place = (id: string, events: EngineEvents) => {
    const worker = new ScriptedWorker(id, generation++, receive, options)
    void worker.closed.then(() => stopped || place(id, events))
    events.link(worker)
  }
  return {
    apiVersion: 1,
    name: 'scripted',
    elastic: options.elastic === true,
    start: async ({ workers }: Placement, events) => {
      for (let i = 0; i < workers; i++) place(`w${i}`, events)
    },
    stop: async () => {
      stopped = true
    },
  }
}

export const SCRIPTED_REF = { name: 'a', module: 'file:///a.js', fingerprint: undefined }
export const scriptedAgent = (name: string) =>
  ({ name, params: undefined, ref: { ...SCRIPTED_REF, name } }) as unknown as TaskLike['agent']
const agent = scriptedAgent('a')

interface Options {
  readonly workers?: number
  readonly concurrency?: number
  readonly maxAttempts?: number
  readonly backoffMs?: number
  readonly backoffMaxMs?: number
  readonly services?: ReadonlyMap<string, Service> | undefined
  /** How many turns of the event loop a frame takes. */
  readonly delay?: () => number
  /** The labels of each worker. */
  readonly labels?: (id: string) => readonly string[]
  /** More workers may come. */
  readonly elastic?: boolean
  readonly notice?: (line: string) => void
  /** Called with the id of each response. */
  readonly answered?: (id: string) => void
}

/** A task is its id, or more; its input is its id. */
type ScriptedTask = string | ({ readonly id: string } & Partial<TaskLike>)

/** Runs tasks with these ids, whose inputs are their ids; the responses by id. */
export async function runScripted(
  ids: readonly string[],
  receive: Receive,
  options: Options = {},
): Promise<Map<string, TaskResponse>> {
  const executor = new ScriptedExecutor(receive, options)
  try {
    return await executor.run(ids)
  } finally {
    await executor.shutdown()
  }
}

/** An executor whose workers are scripted, for several runs. */
export class ScriptedExecutor {
  readonly #options: Options
  readonly #dispatcher: Dispatcher

  constructor(receive: Receive, options: Options = {}) {
    const { workers = 1, concurrency = 4, notice = () => {} } = options
    this.#options = options
    this.#dispatcher = new Dispatcher({
      engine: scriptedEngine(receive, options),
      workerNum: workers,
      settings: { concurrency, recycleAfterTasks: undefined, recycleAboveMb: undefined, withheldEnv: [] },
      placement: {
        ...{ workerEntry: '', execArgv: [], cwd: '.', env: {}, output: 'drop' },
        remote: { execArgv: [], env: {} },
      },
      ...{ entryScript: undefined, bundle: {}, notice },
    })
  }

  async run(tasks: Iterable<ScriptedTask>, signal?: AbortSignal, budget?: Budget): Promise<Map<string, TaskResponse>> {
    const { maxAttempts = 1, backoffMs = 0, backoffMaxMs = 0, services, answered } = this.#options
    const responses = new Map<string, TaskResponse>()
    const iterator = tasks[Symbol.iterator]()
    let next = 0
    const pull = () => {
      const { done, value } = iterator.next()
      if (done) return 'end' as const
      const { id, ...task } = typeof value === 'string' ? { id: value } : value
      return { index: next++, id, task: { input: id, agent, ...task } as TaskLike }
    }
    const close = () => {
      const rest: ReadyTask[] = []
      // Of a generator, nothing was submitted that was not read.
      if (!Array.isArray(tasks)) return rest
      for (let item = pull(); item !== 'end'; item = pull()) rest.push(item)
      return rest
    }
    const source = { open: () => {}, close, pull }
    const options = {
      ...{ runId: 'r', seed: 0, timeoutMs: undefined, maxAttempts, backoffMs, backoffMaxMs },
      ...{
        deadlineMs: undefined,
        signal,
        showLogs: false,
        speculate: false,
        keepSteps: true,
        recorded: false,
        budget,
        services,
      },
    }
    await new Promise<void>((resolve, reject) => {
      this.#dispatcher.open(options, source, {
        response: (_index, response) => {
          answered?.(response.id)
          responses.set(response.id, response)
        },
        full: () => false,
        end: (error) => (error ? reject(error) : resolve()),
      })
    })
    return responses
  }

  shutdown(): Promise<void> {
    return this.#dispatcher.shutdown()
  }
}
