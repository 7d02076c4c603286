import { inspect } from 'node:util'
import { type ErrorCode, ManyworldsError } from '../errors.ts'
import { ownCommand } from '../text/own-command.ts'
import { visible } from '../text/visible.ts'
import { painter } from './colour.ts'
import { UsageError } from './usage-error.ts'

const FAILED = 1
const USAGE = 2

/** Errors that say that something else should have been typed, or configured. */
const ABOUT_WHAT_WAS_ASKED: ReadonlySet<ErrorCode> = new Set([
  'CONFIG_INVALID',
  'RUN_NOT_FOUND',
  'TASK_NOT_FOUND',
  'RUN_EXISTS',
  'RESUME_MISMATCH',
  'TRAINING_CHANGED',
])

/** Says on stderr what went wrong; returns the exit code. A stack is shown only for what nobody expected. */
export function reportError(error: unknown, command: string | undefined): number {
  const paint = painter(process.stderr)
  if (error instanceof UsageError) {
    const page = [...ownCommand(), 'help', ...(command === undefined ? [] : [command])].join(' ')
    process.stderr.write(`${paint('red', 'manyworlds:')} ${visible(error.message)}\n${page} tells more\n`)
    return USAGE
  }
  // As all lines of a node, so that they can be told from those of others in one log.
  const prefix = paint('red', command === 'node' ? 'manyworlds node:' : 'manyworlds:')
  if (ManyworldsError.is(error)) {
    process.stderr.write(`${prefix} ${errorText(error)}\n`)
    return ABOUT_WHAT_WAS_ASKED.has(error.code) ? USAGE : FAILED
  }
  process.stderr.write(`${prefix} ${errorText(error)}\n`)
  return FAILED
}

/** With its code if it is one of ours, else with its stack. */
export const errorText = (error: unknown): string =>
  ManyworldsError.is(error) ? `${visible(error.message)} [${error.code}]` : visible(inspect(error))
