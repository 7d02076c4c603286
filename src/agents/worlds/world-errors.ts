import { TaskError, type TaskErrorCode } from '../../errors.ts'
import type { ProgramEnd } from './python-program.ts'

export const worldError = (code: TaskErrorCode, message: string, cause?: unknown): TaskError =>
  new TaskError(code, message, cause === undefined ? undefined : { cause })

/** An error of Python, as `failure` in python/world_server.py writes it. */
interface PythonFailure {
  readonly type: string
  /** The names of the exception's classes, the most specific first. */
  readonly kinds: readonly string[]
  readonly message: string
  readonly trace: string
}

/** `where`: "step 3 of 'CartPole-v1'". */
export function raised(where: string, text: string): TaskError {
  const failure = JSON.parse(text) as PythonFailure
  if (failure.type === 'InvalidAction') return worldError('ACTION_INVALID', `${where}: ${failure.message}`)
  const message = `${where} raised ${failure.type}: ${failure.message.replace(/\.$/, '')}${advice(failure)}`
  return new TaskError('WORLD_FAILED', message, { stack: `TaskError: ${message}\n${failure.trace}` })
}

function advice({ kinds }: PythonFailure): string {
  if (kinds.includes('DependencyNotInstalled') || kinds.includes('ImportError'))
    return '. Add the missing package to `packages` of pythonWorld(), as pip names it: packages: ["gymnasium[box2d]", "swig"]'
  if (kinds.includes('NamespaceNotFound'))
    return '. For a world of another package, include its module in the id ("ale_py:ALE/Pong-v5") and add the package to `packages` of pythonWorld()'
  return ''
}

/** The error of the request that was executing when the Python process died. */
export const crashed = (where: string, end: ProgramEnd): TaskError =>
  worldError(
    end.hung ? 'WORLD_TIMEOUT' : 'WORLD_CRASHED',
    `the Python process ${end.how} during ${where}${stderrNote(end)}`,
  )

export const stderrNote = ({ stderr }: ProgramEnd): string =>
  stderr === '' ? '; it printed nothing on stderr' : `; the end of its stderr:\n${stderr}`
