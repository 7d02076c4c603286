import { AsyncLocalStorage } from 'node:async_hooks'
import dgram from 'node:dgram'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import timers from 'node:timers'
import { caller } from '../call-site.ts'
import { ManyworldsError } from '../errors.ts'
import { isTopLevel } from './long-stack.ts'
import { parkNow } from './role.ts'

/** Runs that no top level awaits may belong to a main(), if they start within this time of the first one. */
const MAIN_RUNS_MS = 250

/**
 * A worker imports the driver's script for its agents. These guards keep the rest of the script (a server, a queue consumer)
 * from doing the driver's work a second time.
 */

/** Code that runs outside of tasks and is not the script's top level: an agent's `setup`, or an interval of the script. */
export const outsideTasks: AsyncLocalStorage<'setup' | 'interval'> = new AsyncLocalStorage()

/**
 * Throws if the script cannot be parked at this run, because it goes on in this worker as a queue consumer or timer does. Also
 * calls `tell` with the error: the script may swallow it.
 */
export function refuseRuns(tell: (error: ManyworldsError) => void): (call: string) => void {
  let mainSince: number | undefined
  const goesOn = () => {
    if (outsideTasks.getStore() === 'interval') return true
    if (isTopLevel()) return false
    mainSince ??= performance.now()
    return performance.now() - mainSince > MAIN_RUNS_MS
  }
  return (call) => {
    if (!RUNS.test(call)) return
    if (outsideTasks.getStore() === 'setup')
      throw new ManyworldsError(
        'RUNNERS_IN_WORKER',
        `${call} was called in the setup of an agent; only a task can run others, with ctx.runTask(tasks)`,
      )
    if (!goesOn()) return
    const from = caller()
    const error = new ManyworldsError(
      'RUNNERS_IN_WORKER',
      `a worker imported a script for its agents, and the script goes on there: it called ${call}${from === undefined ? '' : ` at ${from.url}:${from.place}`}. A queue consumer, timer or server in the script runs in every worker too, and messages that it takes there are lost. Move the agents to a module of their own, or put the driver's own work behind \`if (!isWorker)\``,
    )
    tell(error)
    throw error
  }
}

/** Calls that submit tasks. */
const RUNS = /Task\(\)$/

/** Fixed ports and named sockets belong to the driver: the script is parked where it opens one. */
export function guardPorts(isScript: () => boolean): void {
  guard(net.Server.prototype, 'listen')
  guard(dgram.Socket.prototype, 'bind')

  function guard<Key extends 'listen' | 'bind'>(prototype: Record<Key, (...args: never[]) => unknown>, key: Key): void {
    const original = prototype[key]
    prototype[key] = function (this: unknown, ...args: never[]) {
      if (isScript() && !anyPort(args[0])) parkNow(key === 'listen' ? 'server.listen()' : 'socket.bind()')
      return original.apply(this, args)
    }
  }
}

/** Marks code of the script's intervals: a run started there is never the script's first. */
export function markIntervals(isScript: () => boolean): void {
  const { setInterval } = globalThis
  const marked = ((...args: Parameters<typeof setInterval>) =>
    isScript() ? outsideTasks.run('interval', setInterval, ...args) : setInterval(...args)) as typeof setInterval
  globalThis.setInterval = marked
  timers.setInterval = marked
  syncBuiltinESMExports()
}

/** Whether the system chooses the port, so that each process gets its own. */
function anyPort(given: unknown): boolean {
  if (given === undefined || given === null || typeof given === 'function') return true
  if (typeof given !== 'object') return Number(given) === 0
  const { port, path, fd, _handle } = given as Record<string, unknown>
  return path === undefined && fd === undefined && _handle === undefined && Number(port ?? 0) === 0
}
