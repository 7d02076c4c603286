// One adapter per pool, each with the settings that cost it the least CPU of those that were tried; comments say which
// mattered. A library is imported in `open`, so that a cold start contains loading it. For the same reason a pool that
// can start its workers one by one does: the first answer then does not wait for the second worker.
import { fileURLToPath } from 'node:url'
import { Worker as Thread } from 'node:worker_threads'
import { inFlightPerWorker as most, workers as two, type Workload } from './workloads.ts'

interface Pool {
  run(workload: Workload, inputs: readonly unknown[]): Promise<unknown[]>
  close(): Promise<unknown>
}

export interface Adapter {
  readonly name: string
  readonly package: string
  readonly kind: 'process' | 'thread'
  /** Inputs given to one call of `run`; the next call is made when all of them are answered. */
  readonly chunk: Readonly<Record<Workload, number>>
  open(workers: number, inFlightPerWorker: number): Promise<Pool>
}

// The same for all: thousands of small tasks at once, as a batch job has them; 10 KB ones in smaller portions, so that what
// is measured is sending them and not collecting the garbage of a heap full of them.
const usual = { noop: 4096, echo: 256, sleep: 1024 }
// Pools that know no limit of what is in flight are given just that much.
const unlimited = { ...usual, sleep: two * most }
// jest-worker and workerpool give a worker one task at a time, whatever is in their queue: 100 sleeps a second.
const oneAtATime = { ...usual, sleep: 32 }

const tasks = fileURLToPath(new URL('./tasks.cjs', import.meta.url))
const names: Workload[] = ['noop', 'echo', 'sleep']

const manyworlds: Adapter = {
  name: 'manyworlds',
  package: 'manyworlds',
  kind: 'process',
  // It is made to be given its tasks in one long array: a call has a price, and it limits what is in flight by itself.
  chunk: usual,
  async open(workers, inFlightPerWorker) {
    const { Runners } = await import('manyworlds')
    const agents = await import('./manyworlds-agents.ts')
    return {
      async run(workload, inputs) {
        const agent = agents[workload]
        const list = inputs.map((input) => agent.task(input as never))
        const responses = await Runners.runTask(list, {
          workerNum: workers,
          concurrency: inFlightPerWorker,
          // None of the others keeps a record.
          store: false,
        })
        return list.map((_, i) => {
          const response = responses.get(`#${i + 1}`)
          if (!response?.success) throw new Error(`task #${i + 1}: ${response?.error ?? 'no response'}`)
          return response.answer
        })
      },
      close: () => Runners.shutdown(),
    }
  },
}

const workerFarm: Adapter = {
  name: 'worker-farm',
  package: 'worker-farm',
  kind: 'process',
  chunk: unlimited,
  async open(workers) {
    const { default: farm } = await import('worker-farm')
    const file = fileURLToPath(new URL('./worker-farm-tasks.cjs', import.meta.url))
    // Its default of 10 calls per worker costs it; JSON, Node's default, is cheaper for it than 'advanced'.
    const calls = farm({ maxConcurrentWorkers: workers, maxConcurrentCallsPerWorker: Infinity }, file, names)
    const call = (workload: Workload, input: unknown) =>
      new Promise<unknown>((resolve, reject) => {
        calls[workload]?.(input, (error: unknown, answer: unknown) => (error ? reject(error) : resolve(answer)))
      })
    return {
      run: (workload, inputs) => Promise.all(inputs.map((input) => call(workload, input))),
      close: () => new Promise((resolve) => farm.end(calls, resolve)),
    }
  },
}

const tinypool = (name: string, kind: Adapter['kind']): Adapter => ({
  name,
  package: 'tinypool',
  kind,
  chunk: usual,
  async open(workers, inFlightPerWorker) {
    const { Tinypool } = await import('tinypool')
    const pool = new Tinypool({
      filename: tasks,
      runtime: kind === 'process' ? 'child_process' : 'worker_threads',
      minThreads: 1,
      maxThreads: workers,
      idleTimeout: 60_000, // or the second worker would be ended and started again all the time
      concurrentTasksPerWorker: inFlightPerWorker,
    })
    return {
      run: (workload, inputs) => Promise.all(inputs.map((input) => pool.run(input, { name: workload }))),
      close: () => pool.destroy(),
    }
  },
})

const workerpool: Adapter = {
  name: 'workerpool',
  package: 'workerpool',
  kind: 'process',
  chunk: oneAtATime,
  async open(workers) {
    const { default: library } = await import('workerpool')
    const file = fileURLToPath(new URL('./workerpool-worker.cjs', import.meta.url))
    const pool = library.pool(file, { workerType: 'process', maxWorkers: workers })
    return {
      run: (workload, inputs) => Promise.all(inputs.map((input) => pool.exec(workload, [input]))),
      close: async () => pool.terminate(),
    }
  },
}

const jestWorker = (name: string, kind: Adapter['kind']): Adapter => ({
  name,
  package: 'jest-worker',
  kind,
  chunk: oneAtATime,
  async open(workers) {
    const { Worker } = await import('jest-worker')
    const pool = new Worker(tasks, {
      numWorkers: workers,
      enableWorkerThreads: kind === 'thread',
      exposedMethods: names,
      // Its own default, 'advanced', takes a fifth more CPU for the echo.
      forkOptions: { serialization: 'json' },
    }) as InstanceType<typeof Worker> & Record<Workload, (input: unknown) => Promise<unknown>>
    return {
      run: (workload, inputs) => Promise.all(inputs.map((input) => pool[workload](input))),
      close: () => pool.end(),
    }
  },
})

const piscina: Adapter = {
  name: 'piscina',
  package: 'piscina',
  kind: 'thread',
  chunk: usual,
  async open(workers, inFlightPerWorker) {
    const { Piscina } = await import('piscina')
    const pool = new Piscina({
      filename: tasks,
      minThreads: 1,
      maxThreads: workers,
      idleTimeout: Number.POSITIVE_INFINITY,
      concurrentTasksPerWorker: inFlightPerWorker,
      recordTiming: false,
    })
    return {
      run: (workload, inputs) => Promise.all(inputs.map((input) => pool.run(input, { name: workload }))),
      close: () => pool.destroy(),
    }
  },
}

const comlink: Adapter = {
  name: 'comlink',
  package: 'comlink',
  kind: 'thread',
  chunk: unlimited,
  async open(workers) {
    const { wrap } = await import('comlink')
    const { default: nodeEndpoint } = await import('comlink/dist/umd/node-adapter.js')
    const threads: Thread[] = []
    const start = () => {
      const thread = new Thread(new URL('./comlink-worker.cjs', import.meta.url))
      threads.push(thread)
      const remote = wrap<Record<Workload, (input: unknown) => unknown>>(nodeEndpoint(thread))
      // Every access to a member makes a proxy, so each member is accessed once and not once per task.
      return { noop: remote.noop, echo: remote.echo, sleep: remote.sleep }
    }
    const remotes: ReturnType<typeof start>[] = []
    const next = (i: number) => (remotes[i % workers] ??= start())
    return {
      run: (workload, inputs) => Promise.all(inputs.map((input, i) => next(i)[workload](input))),
      close: () => Promise.all(threads.map((thread) => thread.terminate())),
    }
  },
}

export const adapters: readonly Adapter[] = [
  manyworlds,
  workerFarm,
  tinypool('tinypool-process', 'process'),
  workerpool,
  jestWorker('jest-worker', 'process'),
  jestWorker('jest-worker-threads', 'thread'),
  piscina,
  tinypool('tinypool', 'thread'),
  comlink,
]
