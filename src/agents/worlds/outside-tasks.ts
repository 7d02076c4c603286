import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Runs code as if no task had asked for it. A process or a connection that one task starts serves others too: what happens in its
 * events, and what it prints, belongs to none of them.
 */
export const outsideTasks: <R>(run: () => R) => R = AsyncLocalStorage.snapshot()
