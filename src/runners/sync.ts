import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { bytesOf } from '../blobs.ts'
import { runsInDriver } from '../engines/make-engine.ts'
import { spreadEngine } from '../engines/spread-engine.ts'
import { ManyworldsError } from '../errors.ts'
import { allModels } from '../models/driver/models-file.ts'
import { modelSecrets } from '../models/secrets.ts'
import type { RunObserver } from '../progress/observer.ts'
import { redactorOf } from '../redaction/config.ts'
import { shownResponse } from '../redaction/shown-response.ts'
import { type DefinedAgent, registry } from '../registry.ts'
import { responseFromWire } from '../response.ts'
import { ALL_WORKERS, type RunConfig } from '../run-config.ts'
import { resolveConfig } from '../run-config-schema.ts'
import type { TaskLike, TaskResponse } from '../task.ts'
import { type RunHost, runHost } from './run-host.ts'
import { identify } from './run-identity.ts'
import { checkArray } from './sources.ts'

/** The answer of the thread. */
export type SyncReply =
  | { readonly ok: true; readonly responses: unknown[] }
  | {
      readonly ok: false
      readonly code: ManyworldsError['code'] | undefined
      readonly name: string
      readonly message: string
      readonly stack: string | undefined
    }

export interface SyncRequest {
  readonly tasks: readonly Record<string, unknown>[]
  readonly config: RunConfig | undefined
  /** The agents that this thread has defined. */
  readonly agents: readonly DefinedAgent[]
}

interface Thread {
  readonly worker: Worker
  readonly port: MessagePort
  /** 1 when the thread has answered. */
  readonly flag: Int32Array
}

// Kept between calls, together with its warm workers.
let thread: Thread | undefined

/** Runs tasks in another thread and stops this one until they are done. */
export function runBlocking(tasks: readonly TaskLike[], given: RunConfig | undefined): Map<string, TaskResponse> {
  const around = runHost()
  const wanted = around ? around.configure(given ?? {}) : given
  // Anything that is not a configuration is rejected in the thread.
  const config = wanted ? spreadEngine(wanted) : wanted
  if (config && runsInDriver(config))
    throw new ManyworldsError(
      'SYNC_UNSUPPORTED',
      'syncRunTask cannot use the inline engine, which needs this thread; use await runTask',
    )
  if (!Array.isArray(tasks))
    throw new ManyworldsError(
      'SYNC_UNSUPPORTED',
      'syncRunTask takes an array of tasks, [task] for a single one: while it blocks, nothing could read from an iterable',
    )
  for (const key of ['signal', 'cls'] as const)
    if (config?.[key] !== undefined)
      throw new ManyworldsError(
        'SYNC_UNSUPPORTED',
        `syncRunTask cannot take \`${key}\`: ${key === 'signal' ? 'nothing could abort it while this thread is blocked; use deadlineMs' : 'a class cannot be sent to the thread that runs the tasks'}, or use await runTask`,
      )
  if (typeof config?.progress === 'function' || config?.onStep || config?.retryIf || config?.services)
    throw new ManyworldsError(
      'SYNC_UNSUPPORTED',
      'syncRunTask cannot call `progress`, `onStep`, `retryIf` or `services` while this thread is blocked; use await runTask',
    )
  thread ??= startThread()
  const { worker, port, flag } = thread
  Atomics.store(flag, 0, 0)
  const plain = tasks.map((task) =>
    typeof task === 'object' && task !== null ? { ...task, agent: bare(task.agent) } : task,
  )
  try {
    // A blob cannot be replaced while this thread is blocked.
    const blobs = config?.blobs && bytesOf(config.blobs)
    const sent = blobs ? { ...config, blobs } : config
    port.postMessage({ tasks: plain, config: sent, agents: registry.list() } satisfies SyncRequest)
  } catch (error) {
    // Repeat the check of the thread here: it knows which task is wrong, and where in it.
    checkArray(tasks)
    throw new ManyworldsError(
      'INPUT_NOT_SERIALIZABLE',
      `a task or the run configuration cannot be sent to the thread that runs the tasks: ${(error as Error).message}; give plain data`,
      { cause: error },
    )
  }
  const observer = around && observe(around, config!, tasks.length)
  // No listener could run now, so restore the default action of Ctrl-C and of a closed terminal.
  withoutListeners(['SIGINT', 'SIGHUP'], () => Atomics.wait(flag, 0, 0))
  const reply = receiveMessageOnPort(port)?.message as SyncReply | undefined
  if (reply === undefined) {
    thread = undefined
    void worker.terminate()
    throw new ManyworldsError('ENGINE_FAILED', 'the thread that runs the tasks of syncRunTask ended without an answer')
  }
  if (reply.ok) {
    const responses = reply.responses.map(responseFromWire)
    const redactor = observer && redactorOf(config?.redact ?? [], modelSecrets(allModels(config)))
    for (const response of responses) observer?.response(shownResponse(response, redactor))
    observer?.end({ error: undefined, interrupted: false })
    return new Map(responses.map((response) => [response.id, response]))
  }
  const error =
    reply.code === undefined
      ? Object.assign(new Error(reply.message), { name: reply.name, stack: reply.stack })
      : new ManyworldsError(reply.code, reply.message)
  observer?.end({ error, interrupted: false })
  throw error
}

/** Tells the program around the script of the run before this thread blocks, and of its outcome afterwards. */
function observe(around: RunHost, config: RunConfig, tasks: number): RunObserver {
  const resolved = resolveConfig(config)
  const { runId, place, mode } = identify(resolved)
  const { engineName, workerNum, concurrency } = resolved
  const workers = workerNum === ALL_WORKERS ? undefined : workerNum
  const start = { runId, file: place?.path, total: tasks, engineName, workerNum: workers, concurrency }
  return around.observe({ ...start, resumed: mode === 'resume', running: () => 0 })
}

function withoutListeners(signals: readonly NodeJS.Signals[], block: () => void): void {
  const listeners = signals.map((signal) => [signal, process.listeners(signal)] as const)
  for (const signal of signals) process.removeAllListeners(signal)
  try {
    block()
  } finally {
    for (const [signal, those] of listeners) for (const listener of those) process.on(signal, listener)
  }
}

function startThread(): Thread {
  const { port1, port2 } = new MessageChannel()
  const flag = new Int32Array(new SharedArrayBuffer(4))
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const worker = new Worker(new URL(`./sync-thread${extension}`, import.meta.url), {
    workerData: { port: port2, flag, argv: process.argv },
    transferList: [port2],
  })
  worker.unref()
  port1.unref()
  return { worker, port: port1, flag }
}

/** An agent without its methods, which cannot be sent; the thread needs only the reference. */
const bare = (agent: TaskLike['agent'] | undefined) =>
  agent && { name: agent.name, params: agent.params, ref: agent.ref, ...(agent.grader && { grader: agent.grader }) }
