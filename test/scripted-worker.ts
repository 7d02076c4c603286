import type { EngineEvents, Placement, RuntimeEngine, WorkerExit, WorkerLink } from '../src/engines/engine.ts'
import { Dispatcher } from '../src/executor/dispatcher.ts'
import type { Service } from '../src/executor/service.ts'
import { Channel } from '../src/protocol/channel.ts'
import { checkDriverMessage } from '../src/protocol/check-messages.ts'
import { CODECS } from '../src/protocol/codec.ts'
import {
  type DriverMessage,
  OUTCOME,
  PROTOCOL_VERSION,
  type TaskItem,
  type WorkerMessage,
} from '../src/protocol/messages.ts'
import type { TaskLike, TaskResponse } from '../src/task.ts'

/** Workers that do what a test says, behind the real executor: for what no worker of ours would say, or when. */

/** Agents are loaded at once, unless it answers false. */
type Receive = (message: DriverMessage, worker: ScriptedWorker) => unknown

export class ScriptedWorker implements WorkerLink {
  readonly id: string
  readonly generation: number
  readonly info = { host: 'nowhere' }
  readonly closed: Promise<WorkerExit>
  readonly #channel: Channel<WorkerMessage, DriverMessage>
  #end!: (exit: WorkerExit) => void
  #toDriver: (frame: Uint8Array) => void = () => {}
  #toWorker!: (frame: Uint8Array) => void

  constructor(id: string, generation: number, receive: Receive) {
    this.id = id
    this.generation = generation
    this.closed = new Promise((resolve) => (this.#end = resolve))
    const wire = {
      send: (frame: Uint8Array) => {
        setImmediate(() => this.#toDriver(frame))
        return true
      },
      onDrain: () => {},
      onFrame: (listener: (frame: Uint8Array) => void) => (this.#toWorker = listener),
    }
    const understand = (message: DriverMessage) => {
      if (message.type === 'hello') this.#channel.speak(message.codec)
      const loads = receive(message, this) !== false
      if (message.type === 'agent' && loads) this.say({ type: 'loaded', agent: message.key })
    }
    this.#channel = new Channel(wire, checkDriverMessage, understand, (error) => {
      throw error
    })
  }

  say(message: WorkerMessage): void {
    this.#channel.post(message)
  }

  answer([lease]: TaskItem, answer: unknown): void {
    this.say({ type: 'done', emits: [], outcomes: [[lease, OUTCOME.success, answer, 1]] })
  }

  /** After what it has said. */
  die(exit: Partial<WorkerExit> = {}): void {
    setImmediate(() => this.#end({ code: null, signal: 'SIGSEGV', ...exit }))
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
    setImmediate(() => this.#toWorker(frame))
    return true
  }
}

/** Replaces workers that end. */
function scriptedEngine(receive: Receive): RuntimeEngine {
  let generation = 0
  let stopped = false
  const place = (id: string, events: EngineEvents) => {
    const worker = new ScriptedWorker(id, generation++, receive)
    void worker.closed.then(() => stopped || place(id, events))
    events.link(worker)
  }
  return {
    apiVersion: 1,
    name: 'scripted',
    start: async ({ workers }: Placement, events) => {
      for (let i = 0; i < workers; i++) place(`w${i}`, events)
    },
    stop: async () => {
      stopped = true
    },
  }
}

export const SCRIPTED_REF = { name: 'a', module: 'file:///a.js', fingerprint: undefined }
const agent = { name: 'a', params: undefined, ref: SCRIPTED_REF } as unknown as TaskLike['agent']

interface Options {
  readonly workers?: number
  readonly concurrency?: number
  readonly maxAttempts?: number
  readonly services?: ReadonlyMap<string, Service> | undefined
}

/** Runs tasks with these ids, whose inputs are their ids; the responses by id. */
export async function runScripted(
  ids: readonly string[],
  receive: Receive,
  { workers = 1, concurrency = 4, maxAttempts = 1, services }: Options = {},
): Promise<Map<string, TaskResponse>> {
  const dispatcher = new Dispatcher({
    engine: scriptedEngine(receive),
    workerNum: workers,
    settings: { concurrency, recycleAfterTasks: undefined, recycleAboveMb: undefined, withheldEnv: [] },
    placement: {
      ...{ workerEntry: '', execArgv: [], cwd: '.', env: {}, output: 'drop' },
      elsewhere: { execArgv: [], env: {} },
    },
    ...{ entryScript: undefined, bundle: {}, notice: () => {} },
  })
  const responses = new Map<string, TaskResponse>()
  let next = 0
  const source = {
    open: () => {},
    close: () => [],
    pull: () => {
      const id = ids[next]
      return id === undefined ? ('end' as const) : { index: next++, id, task: { input: id, agent } }
    },
  }
  const options = {
    ...{ runId: 'r', seed: 0, timeoutMs: undefined, maxAttempts, backoffMs: 0, backoffMaxMs: 0 },
    ...{
      deadlineMs: undefined,
      signal: undefined,
      showLogs: false,
      speculate: false,
      keepSteps: true,
      recorded: false,
      budget: undefined,
      services,
    },
  }
  await new Promise<void>((resolve, reject) => {
    dispatcher.open(options, source, {
      response: (_index, response) => responses.set(response.id, response),
      full: () => false,
      end: (error) => (error ? reject(error) : resolve()),
    })
  }).finally(() => dispatcher.shutdown())
  return responses
}
