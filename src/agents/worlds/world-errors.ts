import { TaskError, type TaskErrorCode } from '../../errors.ts'
import type { ProgramEnd } from './python-program.ts'

export const worldError = (code: TaskErrorCode, message: string, cause?: unknown): TaskError =>
  new TaskError(code, message, cause === undefined ? undefined : { cause })

/** What Python said, in the words of `failure` in python/world_server.py. */
interface PythonFailure {
  readonly type: string
  /** The names of its classes, its own first. */
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
    return '. Name what it needs in `packages` of pythonWorld(), as pip does: packages: ["gymnasium[box2d]", "swig"]'
  if (kinds.includes('NamespaceNotFound'))
    return '. A world of another package is named with its module, "ale_py:ALE/Pong-v5", and its package in `packages` of pythonWorld()'
  return ''
}

/** The Python process died, and this was executing. */
export const crashed = (where: string, end: ProgramEnd): TaskError =>
  worldError(end.hung ? 'WORLD_TIMEOUT' : 'WORLD_CRASHED', `the Python process ${end.how} during ${where}${said(end)}`)

export const said = ({ stderr }: ProgramEnd): string =>
  stderr === '' ? '; it printed nothing on stderr' : `; the end of its stderr:\n${stderr}`
