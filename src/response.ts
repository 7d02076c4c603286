import { TaskError } from './errors.ts'
import type { ErrorItem } from './protocol/messages.ts'
import { unpack } from './protocol/pack.ts'
import type { TaskResponse } from './task.ts'

/** The error of a response, from what came over the wire. */
export function taskError(item: ErrorItem): TaskError {
  const options: { name: string; stack?: string; cause?: unknown } = { name: item.name }
  if (item.stack !== undefined) options.stack = item.stack
  if ('thrown' in item) options.cause = unpack(item.thrown)
  return new TaskError(item.code, item.message, options)
}

/** A response as plain data: how a parent in a worker gets those of its sub-tasks. */
export function responseToWire(response: TaskResponse): unknown {
  if (response.success) return response
  const { code, name, message, stack, cause } = response.error
  return { ...response, error: { code, name, message, stack, ...(cause === undefined ? {} : { cause }) } }
}

export function responseFromWire(wire: unknown): TaskResponse {
  const response = wire as TaskResponse
  if (response.success) return response
  const { code, name, message, stack, cause } = response.error
  const options: { name: string; stack?: string; cause?: unknown } = { name }
  if (stack !== undefined) options.stack = stack
  if (cause !== undefined) options.cause = cause
  return { ...response, error: new TaskError(code, message, options) }
}
