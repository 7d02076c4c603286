import { TaskError, type TaskErrorCode } from './errors.ts'
import type { ErrorItem, Packed } from './protocol/messages.ts'
import { readPacked } from './protocol/read-packed.ts'
import type { TaskResponse } from './task.ts'

/** The error of a response, from what came over the wire. */
export function taskError(item: ErrorItem, stackOf: (stack: string) => string = (stack) => stack): TaskError {
  const options: { name: string; stack?: string; cause?: unknown } = { name: item.name }
  if (item.stack !== undefined) options.stack = stackOf(item.stack)
  if ('thrown' in item) options.cause = causeOf(item.thrown, stackOf)
  return new TaskError(item.code, item.message, options)
}

/** What was thrown. Undefined if it cannot be read: it is there to help, and the error is whole without it. */
function causeOf(thrown: Packed, stackOf: (stack: string) => string): unknown {
  let cause: unknown
  try {
    cause = readPacked(thrown)
  } catch {
    return undefined
  }
  if (cause instanceof Error && typeof cause.stack === 'string') cause.stack = stackOf(cause.stack)
  return cause
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
