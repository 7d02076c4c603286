import { didYouMean } from '../did-you-mean.ts'
import { ManyworldsError } from '../errors.ts'
import { isGrader } from '../grade/grader.ts'
import { MAX_TIMER_MS } from '../task-checks.ts'
import type { StepAgentParams } from './step-agent.ts'

const KEYS = ['name', 'environment', 'policy', 'act', 'maxSteps', 'timeoutMs', 'mode', 'grade', 'module']

/** Checks the options at run time, for programs without a type checker. */
export function checkOptions(options: unknown): void {
  const wrong = (what: string) => new ManyworldsError('AGENT_INVALID', `stepAgent: ${what}`)
  if (typeof options !== 'object' || options === null)
    throw wrong('give one object: stepAgent({ name: "…", environment, policy })')
  const { name, environment, policy, act, maxSteps, timeoutMs, mode, grade } = options as Record<string, unknown>
  if (typeof name !== 'string' || name === '') throw wrong('`name` must be a non-empty string')
  const unknown = Object.keys(options).find((key) => !KEYS.includes(key))
  if (unknown !== undefined)
    throw wrong(`unknown key '${unknown}' in agent '${name}'; allowed: ${KEYS.join(', ')}${didYouMean(unknown, KEYS)}`)
  if (!hasFunctions(environment, ['reset', 'step']))
    throw wrong(`\`environment\` of agent '${name}' must be an environment from defineEnvironment()`)
  if ((policy === undefined) === (act === undefined)) throw wrong(`agent '${name}' needs either \`policy\` or \`act\``)
  if (policy !== undefined && !(hasFunctions(policy, ['open']) && typeof policy.name === 'string'))
    throw wrong(`\`policy\` of agent '${name}' must be a policy: { name, open(ref, host) }, such as randomPolicy()`)
  if (act !== undefined && typeof act !== 'function')
    throw wrong(`\`act\` of agent '${name}' must be a function, it is ${act === null ? 'null' : typeof act}`)
  if (grade !== undefined && typeof grade !== 'function' && !isGrader(grade))
    throw wrong(`\`grade\` of agent '${name}' must be a function or a grader, it is ${typeof grade}`)
  const problem = problemOf({ maxSteps: maxSteps ?? 1, timeoutMs: timeoutMs ?? null, mode: mode ?? 'sample' })
  if (problem !== undefined) throw wrong(`${problem} (agent '${name}')`)
}

type Limits = Pick<StepAgentParams, 'maxSteps' | 'timeoutMs' | 'mode'>

/** Checks params, which may come from `withParams`. */
export function checkedParams(params: StepAgentParams, name: string): Limits {
  const problem = typeof params === 'object' && params !== null ? problemOf(params) : 'params must be an object'
  if (problem !== undefined) throw new Error(`params of agent '${name}': ${problem}`)
  const { mode, maxSteps, timeoutMs } = params
  return { mode, maxSteps, timeoutMs }
}

function problemOf({ maxSteps, timeoutMs, mode }: Record<keyof Limits, unknown>): string | undefined {
  if (!Number.isSafeInteger(maxSteps) || (maxSteps as number) < 1)
    return `\`maxSteps\` must be a whole number of at least 1, it is ${String(maxSteps)}`
  if (timeoutMs !== null && !(typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= MAX_TIMER_MS))
    return `\`timeoutMs\` must be a number of milliseconds up to ${MAX_TIMER_MS}, it is ${String(timeoutMs)}`
  return mode === 'sample' || mode === 'greedy'
    ? undefined
    : `\`mode\` must be 'sample' or 'greedy', it is ${String(mode)}`
}

const hasFunctions = (value: unknown, names: readonly string[]): value is Record<string, unknown> =>
  typeof value === 'object' &&
  value !== null &&
  names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function')
