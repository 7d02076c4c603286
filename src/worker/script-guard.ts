import { AsyncLocalStorage } from 'node:async_hooks'
import dgram from 'node:dgram'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import timers from 'node:timers'
import { parkNow } from './role.ts'

/**
 * A worker imports the driver's script for its agents. These guards keep the rest of the script, where it is a server or
 * takes jobs from a queue, from doing the driver's work a second time.
 */

/** Code that runs outside of tasks and is not the script's top level: an agent's `setup`, or an interval of the script. */
export const outsideTasks: AsyncLocalStorage<'setup' | 'interval'> = new AsyncLocalStorage()

/** Ports with a number, and named sockets, are the driver's: the reading of the script ends where it opens one. */
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

/** Marks what the script's intervals do: a run that is started there is never the script's first. */
export function markIntervals(isScript: () => boolean): void {
  const { setInterval } = globalThis
  const marked = ((...args: Parameters<typeof setInterval>) =>
    isScript() ? outsideTasks.run('interval', setInterval, ...args) : setInterval(...args)) as typeof setInterval
  globalThis.setInterval = marked
  timers.setInterval = marked
  syncBuiltinESMExports()
}

/** Whether the system chooses the port, so that each process gets one of its own. */
function anyPort(given: unknown): boolean {
  if (given === undefined || given === null || typeof given === 'function') return true
  if (typeof given !== 'object') return Number(given) === 0
  const { port, path, fd, _handle } = given as Record<string, unknown>
  return path === undefined && fd === undefined && _handle === undefined && Number(port ?? 0) === 0
}
