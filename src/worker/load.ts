import type { AgentRef, RunnableDefinition } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { LoadFailure } from '../protocol/messages.ts'
import { registry } from '../registry.ts'
import { onParked } from './role.ts'

/** How long an agent may be missing after its module was evaluated: it may be defined in an async main(). */
const LATE_DEFINITION_MS = 3000

export class LoadError extends Error {
  readonly code: LoadFailure
  constructor(code: LoadFailure, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** Finds an agent by importing its module and then, for agents made by a factory, the entry script. */
export async function loadAgent(ref: AgentRef, entry: string | undefined): Promise<RunnableDefinition> {
  let parked = false
  for (const module of new Set([ref.module, entry])) {
    if (module === undefined || registry.find(ref.module, ref.name)) continue
    if ((await evaluate(module, ref)) === 'parked') parked = true
  }
  if (!registry.find(ref.module, ref.name) && !parked) await definedLate(ref)
  const found = registry.find(ref.module, ref.name)
  if (!found) throw notFound(ref, parked)
  if (ref.fingerprint !== undefined && found.fingerprint !== undefined && ref.fingerprint !== found.fingerprint)
    throw new LoadError(
      'AGENT_MISMATCH',
      `agent '${ref.name}' of ${ref.module} is not the same in the worker as in the driver: either the file was changed after the driver started, or the definition depends on something that differs between the two; put what varies into \`params\``,
    )
  return found.definition
}

/** Evaluates a module until it has settled, or has come to a `Runners` call, which in a worker never returns. */
function evaluate(module: string, ref: AgentRef): Promise<'settled' | 'parked'> {
  return new Promise((resolve, reject) => {
    onParked(() => resolve('parked'))
    import(module).then(
      () => resolve('settled'),
      (error: unknown) => {
        if ((error as Error)?.name === 'Parked') return resolve('parked')
        // The agent may have been defined before the module failed: what happens below it is the driver's affair.
        if (registry.find(ref.module, ref.name)) return resolve('settled')
        reject(loadFailed(module, ref, error))
      },
    )
  })
}

function definedLate(ref: AgentRef): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LATE_DEFINITION_MS)
    const check = () => {
      if (!registry.find(ref.module, ref.name)) return
      clearTimeout(timer)
      resolve()
    }
    registry.onDefine = check
    onParked(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}

function notFound(ref: AgentRef, parked: boolean): LoadError {
  const others = registry.names(ref.module)
  const seen = others.length === 0 ? 'no agent' : `only ${others.map((name) => `'${name}'`).join(', ')}`
  return parked
    ? new LoadError(
        'AGENT_DEFINED_TOO_LATE',
        `agent '${ref.name}' is defined after the first awaited run of ${ref.module}, where workers stop reading (they found ${seen}); move its defineAgent above that run, or into a module of its own`,
      )
    : new LoadError(
        'AGENT_NOT_FOUND',
        `a worker imported ${ref.module} and found ${seen} in it, not '${ref.name}'; define it at the top level of a module, not in a function or branch that a worker does not enter`,
      )
}

function loadFailed(module: string, ref: AgentRef, error: unknown): LoadError {
  if (ManyworldsError.is(error) && error.code === 'AGENT_REDEFINED')
    return new LoadError('AGENT_REDEFINED', (error as Error).message)
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  const failure = new LoadError(
    'AGENT_LOAD_FAILED',
    `a worker could not import ${module} to find agent '${ref.name}': ${reason}`,
    {
      cause: error,
    },
  )
  if (error instanceof Error && error.stack !== undefined) failure.stack = error.stack
  return failure
}
