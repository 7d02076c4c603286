import { expect, it } from 'vitest'
import { WORKER_MESSAGES } from '../../src/protocol/check-messages.ts'
import {
  type DriverMessage,
  OUTCOME,
  SUB_TASKS,
  type TaskItem,
  type WorkerMessage,
} from '../../src/protocol/messages.ts'
import { seeded } from '../../src/random.ts'
import { SCRIPTED_REF, ScriptedExecutor, type ScriptedWorker } from '../support/scripted-worker.ts'
import { SEED, share } from '../support/storm.ts'
import { exampleOf } from '../support/wrong-messages.ts'

/**
 * Hostile tasks say what their worker might say, in any order, with leases of their own, of their neighbours, of tasks that are
 * over, and of none; then they end, or take their worker down. Each task must be answered once, and none may run without end.
 */
const SCRIPTS = share(40, 400)
const HOSTILE = 4
const TASKS = 24
const ENDS_WITHIN_MS = 30_000
/** The limit of uncharged reruns, and the first time. */
const MOST_STARTS = 51

const TYPES = Object.keys(WORKER_MESSAGES) as (keyof typeof WORKER_MESSAGES)[]

class HostileScript {
  readonly #seed: number
  #random: () => number
  readonly #given: number[] = []
  readonly starts = new Map<string, number>()
  readonly said: string[] = []
  /** `rerun: 'never'`: tasks that wait for `go`. */
  readonly #asking = new Map<number, TaskItem>()

  constructor(seed: number) {
    this.#seed = seed
    this.#random = seeded(seed)
  }

  readonly receive = (message: DriverMessage, worker: ScriptedWorker): void => {
    if (message.type === 'cancel') {
      if (this.#random() < 0.95) worker.say({ type: 'cancel-seen', lease: message.lease })
      this.#end(message.lease, OUTCOME.cancelled, worker)
    } else if (message.type === 'recall') {
      worker.say({ type: 'returned', unstarted: this.#leases(worker) })
    } else if (message.type === 'go') {
      const item = this.#asking.get(message.lease)
      this.#asking.delete(message.lease)
      if (item) this.#start(item, worker)
    } else if (message.type === 'run') {
      for (const item of message.tasks) {
        this.#given.push(item[0])
        if (isNever(item)) {
          this.#asking.set(item[0], item)
          worker.say({ type: 'may-start', lease: item[0] })
          continue
        }
        // What ran before in the process may have changed its code.
        if (message.careful && this.#random() < 0.9) worker.say({ type: 'started', leases: [item[0]] })
        this.#start(item, worker)
      }
    }
  }

  #start(item: TaskItem, worker: ScriptedWorker): void {
    const id = String(item[2])
    this.starts.set(id, (this.starts.get(id) ?? 0) + 1)
    if (!id.startsWith('h')) return worker.answer(item, 'done')
    const others = this.#random
    // Most do the same each time: what works once works again.
    if (!/^h0/.test(id)) this.#random = seeded(1000 * this.#seed + id.charCodeAt(1))
    this.#harm(item, worker)
    this.#random = others
  }

  #harm(item: TaskItem, worker: ScriptedWorker): void {
    const messages = Math.floor(5 * this.#random())
    for (let n = 0; n < messages; n++) this.#say(item, worker)
    const how = this.#random()
    if (how < 0.1) worker.answer(item, 'done')
    else if (how < 0.15) this.#end(item[0], OUTCOME.failed, worker)
    // It goes on; what it said ends it, or the driver does.
    else if (how < 0.5) setTimeout(() => worker.die(), 20)
    else worker.die()
  }

  #end(lease: number, status: 1 | 2 | 3, worker: ScriptedWorker): void {
    const error = { code: 'TASK_THREW', name: 'Error', message: 'm', stack: undefined } as const
    worker.say({ type: 'done', records: [], outcomes: [[lease, status, error, 1]] })
  }

  #say(item: TaskItem, worker: ScriptedWorker): void {
    const type = TYPES[Math.floor(TYPES.length * this.#random())]!
    const lease = this.#lease(item)
    const fields = Object.entries(WORKER_MESSAGES[type]).map(([name, shape]) => [name, exampleOf(shape, lease)])
    let message = { type, ...Object.fromEntries(fields) } as WorkerMessage
    if (message.type === 'ask') message = this.#ask(message)
    if (message.type === 'ready') message = { ...message, protocol: 1 }
    if (message.type === 'retire' || message.type === 'returned')
      message = { ...message, unstarted: [lease, this.#lease(item)] }
    if (this.#random() < 0.03) message = { ...message, lease: -1 } as WorkerMessage
    this.said.push(`${item[2]} (lease ${item[0]}) says ${JSON.stringify(message)}`)
    if (message.type === 'ask' && this.#random() < 0.3) worker.sayAside(message)
    else worker.say(message)
  }

  #ask(message: Extract<WorkerMessage, { type: 'ask' }>): WorkerMessage {
    const request = Math.floor(4 * this.#random())
    if (this.#random() < 0.5) return { ...message, request }
    const tasks = [{ id: undefined, ref: SCRIPTED_REF, params: undefined, input: 'child', options: {} }]
    const body = { ordinal: Math.floor(1000 * this.#random()), tasks }
    return { ...message, request, kind: 'one', slot: 'give', service: SUB_TASKS, body }
  }

  /** Its own in most cases. */
  #lease([own]: TaskItem): number {
    const which = this.#random()
    if (which < 0.6) return own
    if (which < 0.9) return this.#given[Math.floor(this.#given.length * this.#random())]!
    return Math.floor(10_000 * this.#random())
  }

  #leases(_: ScriptedWorker): number[] {
    return this.#given.filter(() => this.#random() < 0.3)
  }
}

const isNever = (item: TaskItem) => item[2] === 'h0'

/** What was not right. */
async function run(seed: number): Promise<string[]> {
  const script = new HostileScript(seed)
  const answers = new Map<string, number>()
  const random = seeded(seed + 1)
  const executor = new ScriptedExecutor(script.receive, {
    ...{ workers: 1 + Math.floor(3 * random()), concurrency: 1 + Math.floor(4 * random()), maxAttempts: 1 },
    delay: () => Math.floor(3 * random()),
    answered: (id) => answers.set(id, (answers.get(id) ?? 0) + 1),
  })
  const ids = Array.from({ length: TASKS }, (_, n) => (n < HOSTILE ? `h${n}` : `g${n}`))
  let timer: NodeJS.Timeout | undefined
  const problems: string[] = []
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`it did not end within ${ENDS_WITHIN_MS} ms`)), ENDS_WITHIN_MS)
    })
    await Promise.race([executor.run(ids.map((id) => ({ id, rerun: id === 'h0' ? 'never' : 'auto' }))), late])
  } catch (error) {
    problems.push((error as Error).message)
  } finally {
    clearTimeout(timer)
    await executor.shutdown()
  }
  for (const id of ids) if (answers.get(id) !== 1) problems.push(`${id} was answered ${answers.get(id) ?? 0} times`)
  for (const [id, starts] of script.starts)
    if (starts > (id === 'h0' ? 1 : MOST_STARTS)) problems.push(`${id} was started ${starts} times`)
  return problems.length === 0 ? [] : [`HOSTILE_SEED=${seed} HOSTILE_SCRIPTS=1`, ...problems, ...script.said.slice(-40)]
}

it(`${SCRIPTS} scripts of hostile workers end, with each task answered once (HOSTILE_SEED=${SEED})`, {
  timeout: 600_000,
}, async () => {
  for (let n = 0; n < SCRIPTS; n++) expect(await run(SEED + n)).toEqual([])
})
