import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Runs code outside the async context of any task. A process or a connection that one task starts serves other tasks too, so
 * its events and its output belong to none of them.
 */
export const outsideTasks: <R>(run: () => R) => R = AsyncLocalStorage.snapshot()
