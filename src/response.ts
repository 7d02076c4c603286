import { TaskError, type TaskErrorCode } from './errors.ts'
import type { ErrorItem } from './protocol/messages.ts'
import { unpack } from './protocol/pack.ts'
import type { TaskResponse } from './task.ts'

/** The error of a response, from what came over the wire. */
export function taskError(item: ErrorItem, stackOf: (stack: string) => string = (stack) => stack): TaskError {
  const options: { name: string; stack?: string; cause?: unknown } = { name: item.name }
  if (item.stack !== undefined) options.stack = stackOf(item.stack)
  if ('thrown' in item) {
    options.cause = unpack(item.thrown)
    if (options.cause instanceof Error && options.cause.stack !== undefined)
      options.cause.stack = stackOf(options.cause.stack)
  }
  return new TaskError(item.code, item.message, options)
}

/** A task's error as plain data. */
export interface PlainError {
  readonly code: TaskErrorCode
  readonly name: string
  readonly message: string
  readonly stack?: string
  readonly cause?: unknown
}

export function plainError({ code, name, message, stack, cause }: TaskError): PlainError {
  return {
    code,
    name,
    message,
    ...(stack === undefined ? {} : { stack }),
    ...(cause === undefined ? {} : { cause }),
  }
}

export function errorFromPlain({ code, message, ...options }: PlainError): TaskError {
  return new TaskError(code, message, options)
}

/** A response as plain data: how a parent in a worker gets those of its sub-tasks. */
export function responseToWire(response: TaskResponse): unknown {
  return response.success ? response : { ...response, error: plainError(response.error) }
}

export function responseFromWire(wire: unknown): TaskResponse {
  const response = wire as TaskResponse
  return response.success ? response : { ...response, error: errorFromPlain(response.error) }
}
