import { serialize } from 'node:v8'
import { expect, it } from 'vitest'
import type { EngineEvents, Placement, RuntimeEngine, WorkerExit, WorkerLink } from '../../src/engines/engine.ts'
import { Dispatcher } from '../../src/executor/dispatcher.ts'
import type { TaskSource } from '../../src/executor/source.ts'
import { checkWorkerMessage, errorItem, WORKER_MESSAGES } from '../../src/protocol/check-messages.ts'
import { CODECS, decode, encode, PLAIN } from '../../src/protocol/codec.ts'
import {
  type DriverMessage,
  OUTCOME,
  PROTOCOL_VERSION,
  type TaskItem,
  type WorkerMessage,
} from '../../src/protocol/messages.ts'
import { readOutcome } from '../../src/protocol/read-outcome.ts'
import type { TaskLike, TaskResponse } from '../../src/task.ts'
import { checkStep } from '../../src/trajectory/packed-step.ts'
import {
  isSayable,
  named,
  ODD_PACKED,
  ODD_STEPS,
  type Wrong,
  wrongMessages,
  wrongOnes,
} from '../support/wrong-messages.ts'

/** A worker that says one wrong thing when it has tasks; if it is not ended for it, it does its work. */
class BadLink implements WorkerLink {
  readonly id = 'bad'
  readonly generation: number
  readonly info = { host: 'nowhere' }
  readonly closed: Promise<WorkerExit>
  killed = false
  readonly #codec: string
  /** What it says in the place of its first word, or when it holds this lease. */
  readonly #wrong: (lease: number | undefined) => unknown
  #said = false
  #end!: (exit: WorkerExit) => void
  #listener: (frame: Uint8Array) => void = () => {}

  constructor(generation: number, codec: string, wrong: (lease: number | undefined) => unknown) {
    this.generation = generation
    this.#codec = codec
    this.#wrong = wrong
    this.closed = new Promise((resolve) => (this.#end = resolve))
  }

  onDrain(): void {}
  pause(): void {}
  resume(): void {}

  onFrame(listener: (frame: Uint8Array) => void): void {
    this.#listener = listener
    const ready = { type: 'ready', protocol: PROTOCOL_VERSION, codecs: [this.#codec], node: '', pid: 0 }
    this.#say([this.#wrong(undefined) ?? ready], PLAIN)
  }

  kill(): void {
    if (this.killed) return
    this.killed = true
    setImmediate(() => this.#end({ code: null, signal: 'SIGKILL' }))
  }

  send(frame: Uint8Array): boolean {
    for (const message of decode(frame) as DriverMessage[]) {
      if (message.type === 'agent') this.#say([{ type: 'loaded', agent: message.key }], this.#codec)
      if (message.type === 'run') setImmediate(() => this.#work(message.tasks, message.careful))
    }
    return true
  }

  #work(tasks: readonly TaskItem[], careful: boolean): void {
    if (careful) this.#say([{ type: 'started', leases: tasks.map(([lease]) => lease) }], this.#codec)
    if (!this.#said) {
      this.#said = true
      this.#say([this.#wrong(tasks[0]![0])], this.#codec)
    }
    const outcomes = tasks.map(([lease]) => [lease, OUTCOME.success, 'done', 1])
    // The others need not be done before this one was heard.
    setTimeout(() => this.#say([{ type: 'done', records: [], outcomes }], this.#codec), 1)
  }

  #say(messages: readonly unknown[], codec: string): void {
    const frame = encode(messages, codec)
    setImmediate(() => {
      if (!this.killed) this.#listener(frame)
    })
  }
}

/** One worker that is well, and one that is replaced by the next bad one each time it ends. */
class HalfBadEngine implements RuntimeEngine {
  readonly apiVersion = 1
  readonly name = 'half-bad'
  readonly links: BadLink[] = []
  readonly #cases: readonly Case[]
  #stopped = false
  #next = 0

  constructor(cases: readonly Case[]) {
    this.#cases = cases
  }

  get done(): boolean {
    return this.#next > this.#cases.length
  }

  async start(_: Placement, events: EngineEvents): Promise<void> {
    events.link(new BadLink(0, CODECS[0]!, nothingWrong))
    this.#place(events)
  }

  async stop(): Promise<void> {
    this.#stopped = true
  }

  #place(events: EngineEvents): void {
    const { codec, wrong } = this.#cases[this.#next++] ?? { codec: CODECS[0]!, wrong: nothingWrong }
    const link = new BadLink(this.#next, codec, wrong)
    this.links.push(link)
    void link.closed.then(() => this.#stopped || this.#place(events))
    events.link(link)
  }
}

interface Case {
  readonly what: string
  readonly codec: string
  readonly wrong: (lease: number | undefined) => unknown
}

const hungry: WorkerMessage = { type: 'hungry' }
const nothingWrong = (lease: number | undefined) => (lease === undefined ? undefined : hungry)

const agent = {
  name: 'a',
  params: undefined,
  ref: { name: 'a', module: 'file:///a.js', fingerprint: undefined },
} as unknown as TaskLike['agent']

/** Runs tasks for as long as there are wrong things to say. Resolves with the ids that were asked for, and the responses. */
async function survive(cases: readonly Case[]) {
  const engine = new HalfBadEngine(cases)
  const dispatcher = new Dispatcher({
    engine,
    workerNum: 2,
    settings: { concurrency: 2, recycleAfterTasks: undefined, recycleAboveMb: undefined, withheldEnv: [] },
    placement: {
      workerEntry: '',
      execArgv: [],
      cwd: '.',
      env: {},
      output: 'drop',
      remote: { execArgv: [], env: {} },
    },
    entryScript: undefined,
    bundle: {},
    notice: () => {},
  })
  const ids: string[] = []
  const source: TaskSource = {
    open: () => {},
    close: () => [],
    pull: () => {
      if (engine.done) return 'end'
      ids.push(`t${ids.length}`)
      return { index: ids.length - 1, id: ids.at(-1)!, task: { input: 1, agent } }
    },
  }
  const responses: TaskResponse[] = []
  const options = {
    ...{ runId: 'r', seed: 0, timeoutMs: undefined, maxAttempts: 1_000_000, backoffMs: 0, backoffMaxMs: 0 },
    ...{
      deadlineMs: undefined,
      signal: undefined,
      showLogs: false,
      speculate: false,
      keepSteps: true,
      recorded: false,
      budget: undefined,
      services: undefined,
    },
  }
  await new Promise<void>((resolve, reject) => {
    const sink = {
      response: (_index: number, response: TaskResponse) => void responses.push(response),
      full: () => false,
      end: (error?: Error) => (error ? reject(error) : resolve()),
    }
    dispatcher.open(options, source, sink)
  }).finally(() => dispatcher.shutdown())
  expect(responses.map(({ id }) => id).sort()).toEqual(ids.toSorted())
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set(['success']))
  // The last one is the one that says nothing wrong.
  expect(cases.filter((_, at) => !engine.links[at]?.killed).map(({ what }) => what)).toEqual([])
}

/** Wrong messages in every codec in which they still are wrong when they arrive. */
const inAllCodecs = (wrongs: readonly Wrong[]): Case[] =>
  CODECS.flatMap((codec) =>
    wrongs
      .filter((wrong) => isSayable(wrong, codec) && isWrongOnArrival(wrong.make(1), codec))
      .map(({ what, make }) => ({
        what: `${what} (${codec})`,
        codec,
        wrong: (lease) => (lease === undefined ? undefined : make(lease)),
      })),
  )

function isWrongOnArrival(message: unknown, codec: string): boolean {
  try {
    return checkWorkerMessage(decode(encode([message], codec))[0]) !== undefined
  } catch {
    return false
  }
}

const { ready: _, ...LATER_MESSAGES } = WORKER_MESSAGES

it.each(Object.keys(LATER_MESSAGES))(
  'a driver survives every wrong %s of a worker, and answers all tasks',
  async (type) => {
    const table = { [type]: LATER_MESSAGES[type as keyof typeof LATER_MESSAGES] }
    const cases = inAllCodecs(wrongMessages(table))
    if (Object.keys(table[type]!).length > 0) expect(cases.length).toBeGreaterThan(20)
    await survive(cases)
  },
  60_000,
)

const FAILED = [OUTCOME.failed, OUTCOME.timeout]

/** Outcomes and steps are looked into when they are used, and not before. */
const INNER: Readonly<Record<string, Wrong[]>> = {
  'error in the place of an outcome': FAILED.flatMap((status) =>
    [...wrongOnes(errorItem), ...named(ODD_PACKED)].flatMap(({ what, make }) =>
      [make, (lease: number) => serialize(make(lease))].map((value) => ({
        what: `outcome ${status}${what}`,
        make: (lease: number) => ({ type: 'done', records: [], outcomes: [[lease, status, value(lease), 1]] }),
      })),
    ),
  ),
  answer: named(ODD_PACKED).map(({ what, make }) => ({
    what,
    make: (lease) => ({ type: 'done', records: [], outcomes: [[lease, OUTCOME.success, make(lease), 1]] }),
  })),
  step: [...ODD_STEPS.map((step) => ({ what: ` = ${step.slice(0, 40)}`, make: () => step })), ...named(ODD_PACKED)].map(
    ({ what, make }) => ({
      what,
      make: (lease) => {
        const step = make(lease)
        const steps = [[0, step instanceof String ? step.valueOf() : step]]
        return { type: 'done', records: [[lease, steps, []]], outcomes: [[lease, OUTCOME.success, 'done', 1]] }
      },
    }),
  ),
}

/** What the driver would make of a message, by itself. */
function isReadable(message: unknown): boolean {
  try {
    const { records, outcomes } = message as Extract<WorkerMessage, { type: 'done' }>
    for (const [, steps] of records) for (const step of steps) checkStep(step)
    for (const [, status, value] of outcomes) readOutcome(status, value)
    return true
  } catch {
    return false
  }
}

it.each(Object.keys(INNER))(
  'a driver survives every wrong %s, and answers all tasks',
  async (name) => {
    const cases = CODECS.flatMap((codec) =>
      INNER[name]!.filter((wrong) => isSayable(wrong, codec) && !isReadable(wrong.make(1))).map(({ what, make }) => ({
        what: `${what} (${codec})`,
        codec,
        wrong: (lease: number | undefined) => (lease === undefined ? undefined : make(lease)),
      })),
    )
    expect(cases.length).toBeGreaterThan(10)
    await survive(cases)
  },
  60_000,
)

it('a driver survives every wrong first word, and answers all tasks', async () => {
  const cases = wrongMessages({ ready: WORKER_MESSAGES.ready }).filter(
    // As JSON, a list without an end has one place after the other.
    ({ what, make }) => !what.includes('without an end') && isWrongOnArrival(make(1), PLAIN),
  )
  expect(cases.length).toBeGreaterThan(20)
  const first = ({ what, make }: Wrong): Case => ({
    what,
    codec: CODECS[0]!,
    wrong: (lease) => (lease === undefined ? make(1) : hungry),
  })
  await survive(cases.map(first))
}, 60_000)
