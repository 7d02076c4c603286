import { inspect } from 'node:util'
import { type ErrorCode, ManyworldsError, TaskError } from '../../errors.ts'
import { escapeControls } from '../../text/escape-controls.ts'
import { ownCommand } from '../../text/own-command.ts'
import { painterFor } from '../../text/paint.ts'
import { UsageError } from './usage-error.ts'

const FAILED = 1
const USAGE = 2

/** Codes of errors that the user fixes on the command line, in the configuration or in the tasks. Nearly all are found before work starts. */
const ABOUT_WHAT_WAS_ASKED: ReadonlySet<ErrorCode> = new Set([
  'CONFIG_INVALID',
  'MODEL_NO_PRICE',
  'MODEL_UNKNOWN',
  'TASK_INVALID',
  'TASK_DUPLICATE_ID',
  'INPUT_NOT_SERIALIZABLE',
  'DEPENDENCY_UNKNOWN',
  'DEPENDENCY_CYCLE',
  'DEPENDENCY_NEEDS_ARRAY',
  'SYNC_UNSUPPORTED',
  'GRADER_INVALID',
  'AGENT_INVALID',
  'AGENT_REDEFINED',
  'ENVIRONMENT_INVALID',
  'ENGINE_INVALID',
  'POLICY_INVALID',
  'LEARNER_INVALID',
  'RUN_NOT_FOUND',
  'NOT_A_STORE',
  'TASK_NOT_FOUND',
  'RUN_EXISTS',
  'RESUME_MISMATCH',
  'TRAINING_CHANGED',
])

/** Prints the error on stderr; returns the exit code. Only unexpected errors are printed with their stack. */
export function reportError(error: unknown, command: string | undefined): number {
  const paint = painterFor(process.stderr)
  if (error instanceof UsageError) {
    const page = [...ownCommand(), 'help', ...(command === undefined ? [] : [command])].join(' ')
    process.stderr.write(`${paint('red', 'manyworlds:')} ${escapeControls(error.message)}\nRun \`${page}\` for usage\n`)
    return USAGE
  }
  // The prefix of all lines of a node, because several programs may share one log.
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
  ManyworldsError.is(error) || TaskError.is(error)
    ? `${escapeControls(error.message)} [${error.code}]`
    : escapeControls(inspect(error))
