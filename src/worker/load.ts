import { fileURLToPath } from 'node:url'
import type { AgentRef, RunnableDefinition } from '../agent.ts'
import { thrownAt } from '../call-site.ts'
import { ManyworldsError } from '../errors.ts'
import { registry } from '../registry.ts'
import { importModule } from './bundles.ts'
import { loadAdvice } from './load-advice.ts'
import { LoadError } from './load-error.ts'
import { whoWaits } from './long-stack.ts'
import { onParked } from './role.ts'

/** How long to wait for an agent after its module was evaluated: it may be defined in an async main(). */
const LATE_DEFINITION_MS = 3000
/** The same after a `Runners` call, which never returns in a worker: only code that does not await the call can still run. */
const LATE_AFTER_PARKING_MS = 1000
/** How long a module may go on loading after a `Runners` call, if it is unknown whether the module awaits that call. */
const SLOW_AFTER_PARKING_MS = 15_000

const PARKS_KEPT = 100

/** Every module is evaluated once; agents that come later wait for the same evaluation. */
const evaluations = new Map<string, Promise<void>>()
/** The `Runners` call at which the script was parked, and its stack. */
const parks: { readonly call: string; readonly stack: string }[] = []
/** Callbacks that wait for an agent to be defined, or for a script to be parked. */
const waiting = new Set<() => void>()
const wake = () => {
  for (const check of waiting) check()
}
registry.onDefine = wake

/** `refuse` throws if the script cannot be parked at a call. */
export function readScripts(refuse: (call: string) => void): void {
  onParked((call) => {
    refuse(call)
    // A timer of the script may get here repeatedly.
    if (parks.length >= PARKS_KEPT) return
    parks.push({ call, stack: whoWaits() })
    wake()
  })
}

/** Finds an agent by importing its module and then, for agents made by a factory, the entry script. */
export async function loadAgent(ref: AgentRef, entry: string | undefined): Promise<RunnableDefinition> {
  const find = () => registry.find(ref.module, ref.name)
  let entryError: LoadError | undefined
  if (!find()) await evaluate(ref.module, ref)
  if (!find() && entry !== undefined && entry !== ref.module)
    await evaluate(entry, ref).catch((error: LoadError) => {
      entryError = error
    })
  if (!find() && !entryError) await definedLate(find)
  const found = find()
  if (!found) throw notFound(ref, entryError)
  if (ref.fingerprint !== undefined && found.fingerprint !== undefined && ref.fingerprint !== found.fingerprint)
    throw new LoadError(
      'AGENT_MISMATCH',
      `agent '${ref.name}' of ${ref.module} is not the same in the worker as in the driver: either the file was changed after the driver started, or the definition depends on something that differs between the two; put what varies into \`params\``,
    )
  return found.definition
}

/** Evaluates a module until it has settled or is parked (then it never settles). */
async function evaluate(module: string, ref: AgentRef): Promise<void> {
  let evaluation = evaluations.get(module)
  if (!evaluation) {
    evaluation = importModule(module)
    evaluations.set(module, evaluation)
  }
  try {
    await Promise.race([evaluation, parkedIn(module)])
  } catch (error) {
    if ((error as Error)?.name === 'Parked') return
    // The agent may have been defined before the module failed; code below it matters only in the driver.
    if (!registry.find(ref.module, ref.name)) throw loadFailed(module, ref, error)
  }
}

/** If another script was parked, this module may just be slow: wait for it, up to a limit. */
async function parkedIn(module: string): Promise<void> {
  const before = parks.length
  const here = () => parks.some(({ stack }) => stack.includes(module) || stack.includes(pathOf(module)))
  await until(() => here() || parks.length > before)
  await until(here, SLOW_AFTER_PARKING_MS)
}

const pathOf = (module: string) => (module.startsWith('file:') ? fileURLToPath(module) : module)

async function definedLate(find: () => unknown): Promise<void> {
  const found = () => find() !== undefined
  if (parks.length === 0) await until(() => found() || parks.length > 0, LATE_DEFINITION_MS)
  if (parks.length > 0) await until(found, LATE_AFTER_PARKING_MS)
}

function until(condition: () => boolean, atMostMs?: number): Promise<void> {
  if (condition()) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      waiting.delete(check)
      resolve()
    }
    const check = () => condition() && end()
    const timer = atMostMs === undefined ? undefined : setTimeout(end, atMostMs)
    waiting.add(check)
  })
}

function notFound(ref: AgentRef, entryError: LoadError | undefined): LoadError {
  const others = registry.names(ref.module)
  const seen = others.length === 0 ? 'no agent' : `only ${others.map((name) => `'${name}'`).join(', ')}`
  const [park] = parks
  return park
    ? new LoadError(
        'AGENT_DEFINED_TOO_LATE',
        `agent '${ref.name}' of ${ref.module} is defined after ${park.call}, where workers stop reading a script (they found ${seen}); move its defineAgent above that call, or into a module of its own`,
      )
    : new LoadError(
        'AGENT_NOT_FOUND',
        `a worker imported ${ref.module} and found ${seen} in it, not '${ref.name}'; define it at the top level of a module, not in a function or branch that a worker does not enter${entryError === undefined ? '' : ` (the script that was started may define it, but ${entryError.message})`}`,
        { cause: entryError },
      )
}

function loadFailed(module: string, ref: AgentRef, error: unknown): LoadError {
  if (ManyworldsError.is(error) && error.code === 'AGENT_REDEFINED')
    return new LoadError('AGENT_REDEFINED', (error as Error).message)
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  const failure = new LoadError(
    'AGENT_LOAD_FAILED',
    `a worker could not import ${module} to find agent '${ref.name}': ${reason}${thrownAt(error)}${loadAdvice(error, module)}`,
    {
      cause: error,
    },
  )
  if (error instanceof Error && error.stack !== undefined) failure.stack = error.stack
  return failure
}
