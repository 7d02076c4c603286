import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { EngineEvents, Placement, RuntimeEngine, WorkerExit, WorkerLink } from '../../src/engines/engine.ts'
import { Dispatcher } from '../../src/executor/dispatcher.ts'
import type { TaskSource } from '../../src/executor/source.ts'
import { agree, CODECS, decode, encode, PLAIN } from '../../src/protocol/codec.ts'
import {
  type DriverMessage,
  OUTCOME,
  type Outcome,
  PROTOCOL_VERSION,
  type TaskItem,
  type WorkerMessage,
} from '../../src/protocol/messages.ts'
import { KIND } from '../../src/protocol/raw-frames.ts'
import type { TaskLike, TaskResponse } from '../../src/task.ts'
import { share } from '../support/storm.ts'
import { SUB_TASKS_ASK } from '../support/sub-tasks-ask.ts'

/** How a task behaves: it answers, throws, or takes its worker down; after it has waited for sub-tasks, or while it should. */
type Behavior = 'good' | 'throws' | 'poison' | 'parent' | 'false parent'

/** Numbers in [0, 1) that depend on the seed alone. */
function randomFrom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    return (state >>> 0) / 2 ** 32
  }
}

/** A worker that loses unsent results when it dies, repeats itself, retires, and dies for no reason. */
class HostileLink implements WorkerLink {
  readonly id: string
  readonly generation: number
  readonly info = { host: 'nowhere' }
  readonly closed: Promise<WorkerExit>
  readonly #random: () => number
  readonly #concurrency: number
  #end!: (exit: WorkerExit) => void
  #listener: (frame: Uint8Array) => void = () => {}
  #dead = false
  #queue: TaskItem[] = []
  #running: TaskItem[] = []
  #unsent: Outcome[] = []
  #careful = false
  #requests = 0
  /** Parents that wait, by the number of their request. */
  readonly #waiting = new Map<number, TaskItem>()

  readonly #codecs: readonly string[]
  readonly kinds = new Set<number>()

  constructor(
    id: string,
    generation: number,
    concurrency: number,
    random: () => number,
    codecs: readonly string[] = CODECS,
  ) {
    this.#codecs = codecs
    this.id = id
    this.generation = generation
    this.#concurrency = concurrency
    this.#random = random
    this.closed = new Promise((resolve) => (this.#end = resolve))
  }

  onDrain(): void {}
  pause(): void {}
  resume(): void {}
  onFrame(listener: (frame: Uint8Array) => void): void {
    this.#listener = listener
    this.#say({ type: 'ready', protocol: PROTOCOL_VERSION, codecs: this.#codecs, node: '', pid: 0 })
  }

  kill(): void {
    if (this.#dead) return
    this.#dead = true
    setImmediate(() => this.#end({ code: null, signal: 'SIGKILL' }))
  }

  send(frame: Uint8Array): boolean {
    this.kinds.add(frame[0]!)
    for (const message of decode(frame) as DriverMessage[]) {
      if (message.type === 'agent') this.#say({ type: 'loaded', agent: message.key })
      if (message.type === 'recall')
        this.#say({ type: 'returned', unstarted: this.#queue.splice(0).map(([lease]) => lease) })
      if (message.type === 'answer') {
        const parent = this.#waiting.get(message.request)
        this.#waiting.delete(message.request)
        if (parent && parent[3] === 'false parent') this.kill()
        else if (parent) this.#unsent.push([parent[0], OUTCOME.success, 'yes', 1])
        setImmediate(() => this.#work())
      }
      if (message.type === 'run') {
        this.#careful = message.careful
        this.#queue.push(...message.tasks)
        setImmediate(() => this.#work())
      }
    }
    return true
  }

  #work(): void {
    if (this.#dead) return
    const chance = this.#random()
    // Any time after it has asked.
    const impatient = [...this.#waiting.values()].some((task) => task[3] === 'false parent')
    if (impatient && this.#random() < 0.3) return this.kill()
    if (chance < 0.02) return this.kill()
    if (chance < 0.03)
      this.#say({ type: 'retire', reason: 'a whim', unstarted: this.#queue.splice(0).map(([lease]) => lease) })
    while (this.#queue.length > 0 && this.#running.length < this.#concurrency) {
      const task = this.#queue.shift()!
      if (this.#careful) this.#say({ type: 'started', leases: [task[0]] })
      if ((task[3] as Behavior) === 'poison') return this.kill()
      if (String(task[3]).endsWith('parent')) {
        this.#ask(task)
        continue
      }
      this.#running.push(task)
      if (this.#running.length < this.#concurrency) this.#say({ type: 'hungry' })
    }
    for (const [lease, , , behavior] of this.#running.splice(0, 1 + Math.floor(this.#random() * 8))) {
      const error = { code: 'TASK_THREW', name: 'Error', message: 'no', stack: undefined }
      this.#unsent.push(behavior === 'throws' ? [lease, OUTCOME.failed, error, 1] : [lease, OUTCOME.success, 'yes', 1])
    }
    if (this.#careful || this.#random() < 0.6) {
      const outcomes = this.#unsent.splice(0)
      if (outcomes.length > 0) this.#say({ type: 'done', records: [], outcomes })
      // Said twice: the second time counts for nothing.
      if (outcomes.length > 0 && this.#random() < 0.2) this.#say({ type: 'done', records: [], outcomes })
    }
    const busy = this.#running.length > 0 || this.#unsent.length > 0 || this.#queue.length > 0
    if (busy || impatient) setImmediate(() => this.#work())
  }

  #ask(task: TaskItem): void {
    this.#waiting.set(++this.#requests, task)
    const input = this.#random() < 0.1 ? 'throws' : 'good'
    const child = { id: undefined, ref: agent.ref, params: undefined, input, options: {} }
    const tasks = Array.from({ length: 1 + Math.floor(this.#random() * 3) }, () => child)
    this.#say({ ...SUB_TASKS_ASK, request: this.#requests, lease: task[0], body: { ordinal: 0, tasks } })
  }

  #say(message: WorkerMessage): void {
    const frame = encode([message], message.type === 'ready' ? PLAIN : agree(this.#codecs)!)
    setImmediate(() => {
      if (!this.#dead || this.#random() < 0.5) this.#listener(frame)
    })
  }
}

class HostileEngine implements RuntimeEngine {
  readonly apiVersion = 1
  readonly name = 'hostile'
  readonly #random: () => number
  readonly #concurrency: number
  readonly #codecs: readonly string[]
  readonly links: HostileLink[] = []
  #generation = 0
  #stopped = false

  constructor(seed: number, concurrency: number, codecs: readonly string[] = CODECS) {
    this.#codecs = codecs
    this.#random = randomFrom(seed)
    this.#concurrency = concurrency
  }

  async start({ workers }: Placement, events: EngineEvents): Promise<void> {
    for (let i = 0; i < workers; i++) this.#place(`w${i}`, events)
  }

  async stop(): Promise<void> {
    this.#stopped = true
  }

  #place(id: string, events: EngineEvents): void {
    const link = new HostileLink(id, this.#generation++, this.#concurrency, this.#random, this.#codecs)
    this.links.push(link)
    void link.closed.then(() => this.#stopped || this.#place(id, events))
    events.link(link)
  }
}

const agent = {
  name: 'a',
  params: undefined,
  ref: { name: 'a', module: 'file:///a.js', fingerprint: undefined },
} as unknown as TaskLike['agent']

function runOn(
  engine: RuntimeEngine,
  workers: number,
  concurrency: number,
  behaviors: readonly Behavior[],
): Promise<TaskResponse[]> {
  const dispatcher = new Dispatcher({
    engine,
    workerNum: workers,
    settings: { concurrency, recycleAfterTasks: undefined, recycleAboveMb: undefined, withheldEnv: [] },
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
  let next = 0
  const source: TaskSource = {
    open: () => {},
    close: () => [],
    pull: () =>
      next === behaviors.length
        ? 'end'
        : { index: next, id: `t${next}`, task: { input: behaviors[next++]!, agent, maxAttempts: 12 } },
  }
  const responses: TaskResponse[] = []
  return new Promise<TaskResponse[]>((resolve, reject) => {
    const options = {
      runId: 'r',
      seed: 0,
      timeoutMs: undefined,
      maxAttempts: 12,
      backoffMs: 0,
      backoffMaxMs: 0,
      deadlineMs: undefined,
      signal: undefined,
      showLogs: false,
      speculate: false,
      keepSteps: true,
      recorded: false,
      budget: undefined,
      services: undefined,
    }
    dispatcher.open(options, source, {
      response: (_index, response) => responses.push(response),
      full: () => false,
      end: (error) => (error ? reject(error) : resolve(responses)),
    })
  }).finally(() => dispatcher.shutdown())
}

/** A parent that is run again asks for fewer sub-tasks: one that nobody waits for any more is a suspect beside the poison. */
const ORPHANED_SUSPECT: [number, number, number, Behavior[]] = [
  ...([-494352654, 1, 3] as const),
  ['parent', 'good', 'good', 'parent', 'good', 'good', 'good', 'good', 'good', 'good', 'poison', 'good'],
]

it('every task is answered exactly once and rightly, however the workers behave', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer(),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 12 }),
      fc.array(
        fc.oneof(
          { weight: 30, arbitrary: fc.constant<Behavior>('good') },
          { weight: 2, arbitrary: fc.constant<Behavior>('throws') },
          { weight: 1, arbitrary: fc.constant<Behavior>('poison') },
          { weight: 5, arbitrary: fc.constant<Behavior>('parent') },
          { weight: 1, arbitrary: fc.constant<Behavior>('false parent') },
        ),
        { minLength: 1, maxLength: 150 },
      ),
      async (seed, workers, concurrency, behaviors) => {
        const responses = await runOn(new HostileEngine(seed, concurrency), workers, concurrency, behaviors)
        expect(responses.map(({ id }) => id).sort()).toEqual(behaviors.map((_, index) => `t${index}`).sort())
        for (const { id, status } of responses) {
          // A task that throws may, at its last attempt, be alone in a worker that dies for no reason.
          const right = {
            ...{ good: ['success'], throws: ['failed', 'crashed'], poison: ['crashed'] },
            ...{ parent: ['success'], 'false parent': ['crashed'] },
          }[behaviors[Number(id.slice(1))]!]
          expect(right, id).toContain(status)
        }
      },
    ),
    {
      numRuns: share(200, 3000),
      timeout: 20_000,
      interruptAfterTimeLimit: share(40_000, 60_000),
      examples: [ORPHANED_SUSPECT],
    },
  )
}, 180_000)

it('a worker whose v8 is another is spoken to in the portable codec', async () => {
  const engine = new HostileEngine(1, 4, ['devalue/1', 'v8/0'])
  const responses = await runOn(
    engine,
    2,
    4,
    Array.from({ length: 50 }, () => 'good' as const),
  )
  expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 'success'))
  // The greeting is plain. Whoever was greeted late, or died first, got nothing else.
  for (const { kinds } of engine.links)
    expect([[], [KIND.plain], [KIND.plain, KIND.portable]]).toContainEqual([...kinds])
  expect(engine.links.some(({ kinds }) => kinds.has(KIND.portable))).toBe(true)
})

it('a worker with which no codec can be agreed on is an error that names both sides', async () => {
  const run = runOn(new HostileEngine(1, 4, ['v8/0', 'x/1']), 1, 4, ['good'])
  const message = `speaks protocol 1 in v8/0 or x/1 (Node ); this driver speaks 1 in ${CODECS.join(' or ')}`
  await expect(run).rejects.toMatchObject({ code: 'PROTOCOL_ERROR', message: expect.stringContaining(message) })
})
