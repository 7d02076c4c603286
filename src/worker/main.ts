import { Socket } from 'node:net'
import type { AgentRef, RunnableDefinition } from '../agent.ts'
import { callerModule } from '../call-site.ts'
import { framedWire } from '../engines/frames.ts'
import { ManyworldsError } from '../errors.ts'
import { guardExit } from '../guard-exit.ts'
import { type BundlePlace, OUTCOME, type WorkerMessage } from '../protocol/messages.ts'
import { pack } from '../protocol/pack.ts'
import { moduleInBundle } from './bundles.ts'
import { isLeftover, type TaskContext } from './context.ts'
import { errorItem } from './error-item.ts'
import { loadAgent, readScripts } from './load.ts'
import { keepOutputWithTasks } from './output.ts'
import { ARGV_VARIABLE, BLOBS_VARIABLE, becomeWorker, parkNow } from './role.ts'
import { guardPorts, markIntervals, outsideTasks, refuseRuns } from './script-guard.ts'
import { serveDriver } from './serve.ts'
import { endWorker, SHARED } from './watchdog-contract.ts'
import { framesFd, ownMark, sideFd, watchdog } from './watchdog-start.ts'

const TASK_COUNT_MS = 500

const runMs = ({ startedAt }: TaskContext) => Math.round(performance.now() - startedAt)

/** The child side. Frames come and go on fd 3; fd 4 belongs to the watchdog thread. */

const socket = new Socket({ fd: framesFd, readable: true, writable: true })
const leaving = new AbortController()
// The driver is gone or closed the connection: end this process and everything that its tasks started.
const leave = () => {
  leaving.abort()
  endWorker(ownMark)
}
socket.on('error', leave)
socket.on('close', leave)

const { runner, channel, ready } = serveDriver({
  wire: framedWire(socket),
  sideFd,
  shared: watchdog.shared,
  leaving: leaving.signal,
  blobFolder: process.env[BLOBS_VARIABLE],
  load: (ref, entry, bundle) => (bundle ? loadBundled(ref, bundle) : loadAgent(ref, entry)),
  broken(error) {
    if (error) process.stderr.write(`manyworlds worker: ${error.message}\n`)
    realExit(1)
  },
})
delete process.env[BLOBS_VARIABLE]
watchdog.blameBy(() => {
  const task = runner.current()
  // Code of a task that was already answered may not block the event loop at all: its deadline is 0.
  return task && { lease: task.lease, deadline: task.settled ? 0 : task.deadline, runMs: runMs(task) }
})
void watchdog.watching.then(() => runner.open())
// The number of tasks in heartbeats. Updated by a timer, because updating it with each task would cost too much.
setInterval(() => {
  watchdog.shared[SHARED.tasks] = runner.live.size
}, TASK_COUNT_MS).unref()

becomeWorker({ current: runner.current })
keepOutputWithTasks(runner.current)
const isScript = () => runner.current() === undefined && outsideTasks.getStore() !== 'setup'
guardPorts(isScript)
markIntervals(isScript)
const tellDriver = ({ message, stack }: ManyworldsError) => {
  for (const key of runner.agents.keys())
    channel.control({ type: 'load-failed', agent: key, code: 'RUNNERS_IN_WORKER', message, stack })
}
readScripts(refuseRuns(tellDriver))
showDriversArguments()
ready()

function loadBundled(ref: AgentRef, bundle: BundlePlace): Promise<RunnableDefinition> {
  const entry = bundle.entry === undefined ? undefined : moduleInBundle(bundle, bundle.entry)
  return loadAgent({ ...ref, module: moduleInBundle(bundle, bundle.module) }, entry)
}

// The cache was for the start of this process: processes that tasks start must not inherit it.
if (process.env.MANYWORLDS_COMPILE_CACHE !== undefined) {
  delete process.env.MANYWORLDS_COMPILE_CACHE
  delete process.env.NODE_COMPILE_CACHE
}

/** Gives the user's modules the driver's command line, so that they read the same arguments. */
function showDriversArguments(): void {
  const argv = process.env[ARGV_VARIABLE]
  delete process.env[ARGV_VARIABLE]
  if (argv !== undefined) process.argv = JSON.parse(argv) as string[]
}

// ---- leaving because of a task

guardExit({ group: true })

let exiting: WorkerMessage | undefined
const realExit = process.exit.bind(process)
process.exit = ((code?: number) => {
  const task = runner.current()
  if (task !== undefined && !task.settled) {
    const { stack, message } = errorItem('PROCESS_EXIT', new Error(`the task called process.exit(${code ?? ''})`))
    const error = { code: 'PROCESS_EXIT', name: 'TaskError', message, stack } as const
    exiting = { type: 'exiting', lease: task.lease, error, runMs: runMs(task) }
  }
  // If the script itself calls process.exit() while the worker imports it, park the script; the worker must go on.
  if (task === undefined && callerModule() !== undefined) parkNow('process.exit()')
  return realExit(code)
}) as typeof process.exit

process.on('exit', () => {
  // Finished outcomes must not be lost with the process. If the socket still holds part of a frame, writing past it
  // would garble the stream; those tasks are then run again.
  if (socket.writableLength > 0) return
  runner.outbox.last()
  if (exiting) channel.control(exiting)
})

process.on('uncaughtException', (error) => {
  if (isLeftover(error)) return
  // `Parked` ends the import of a script; RUNNERS_IN_WORKER was reported when it was thrown.
  if (error?.name === 'Parked' || (ManyworldsError.is(error) && error.code === 'RUNNERS_IN_WORKER')) return
  const task = runner.current()
  if (task !== undefined && !task.settled) {
    runner.endings.settle(task, OUTCOME.failed, pack(errorItem('UNCAUGHT_IN_TASK', error)))
    task.abort(error)
  } else {
    // Leave out the thrown value: it may contain bytes, and before the driver's hello only plain data can be sent.
    const { thrown: _, ...plain } = errorItem('UNCAUGHT_IN_TASK', error)
    channel.control({ type: 'stray', error: plain })
  }
  // Node guarantees nothing about a process after this: finish the running tasks, and take no new ones.
  runner.recycling.retire('an uncaught exception')
})
