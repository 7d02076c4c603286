import { hash } from 'node:crypto'
import type { AgentRef, Context, RunnableDefinition } from '../agent.ts'
import { moduleOf, register } from '../definition.ts'
import { ManyworldsError } from '../errors.ts'
import type { TaskLike } from '../task.ts'
import { checkGrade } from './check-grade.ts'
import type { Grade } from './grade.ts'
import type { GradeSample } from './sample.ts'

/** The return value of a grading function: a grade, or a short form of one. */
export type GradeLike = Grade | number | boolean

/** Grades the outcome of a task. Runs in a worker, after the outcome was stored. */
export type GradeFunction<Input = unknown, Answer = unknown, Options = unknown> = (
  sample: GradeSample<Input, Answer>,
  ctx: GradeContext<Options>,
) => GradeLike | Promise<GradeLike>

/** The context of a grader: its options, services, and the models of the run, for model judges. */
export type GradeContext<Options = unknown> = Pick<
  Context<Options>,
  'signal' | 'log' | 'params' | 'ask' | 'generate' | 'model'
>

/**
 * A reference to a grader: workers import its module and find it by name, as they find agents. It is plain data, accepted as
 * `grade` of a task, a run or an agent.
 */
export interface Grader {
  readonly kind: 'grader'
  readonly name: string
  readonly ref: AgentRef
  /** The options, which are sent to workers. */
  readonly params: unknown
  /** Whether the grader needs the steps. */
  readonly trajectory: boolean
  /** The hash of source and options: identifies the grader of a grade. */
  readonly sha256: string
  /** Good enough for evaluation, but easy to exploit by a learner: not for training. */
  readonly evaluationOnly?: true
}

/** What `defineGrader` takes. */
export interface GraderDefinition<Input, Answer, Options> {
  /** Unique in its module. */
  readonly name: string
  readonly grade: GradeFunction<Input, Answer, Options>
  /** Plain data that varies. It is sent to workers, where the function finds it in `ctx.params`. */
  readonly params?: Options
  /** True: `sample.trajectory` has the steps. Reading and sending them costs time, so set it only if you need them. */
  readonly trajectory?: boolean
  /** True: not for training, because a learner would exploit it. */
  readonly evaluationOnly?: boolean
  /** The module that workers import: `import.meta.url`. Needed only if the call site cannot be determined. */
  readonly module?: string | URL
}

/**
 * Defines a grader. Call it at the top level of a module, like `defineAgent`.
 *
 * @example
 * const close = defineGrader({
 *   name: 'close',
 *   grade: ({ answer, groundTruth }) => Math.abs(Number(answer) - Number(groundTruth)) < 0.01,
 * })
 * await Runners.runTask(tasks, { grade: close })
 */
export function defineGrader<Input = unknown, Answer = unknown, Options = undefined>(
  definition: GraderDefinition<Input, Answer, Options>,
): Grader {
  const { name, grade, params, module, ...traits } = checkDefinition(definition)
  const url = moduleOf(module, `defineGrader: grader '${name}'`)
  return graderOf(registerGrader(name, grade as GradeFunction, url), params, traits)
}

/** The grader of an agent. A function is registered under a name derived from the agent's. */
export function graderOfAgent(agent: string, grade: Grader | GradeFunction, module: string): Grader {
  if (isGrader(grade)) return grade
  return graderOf(registerGrader(`${agent}.grade`, grade, module), undefined, {})
}

function registerGrader(name: string, grade: GradeFunction, module: string): AgentRef {
  const run = async (sample: unknown, ctx: Context) => checkGrade(await grade(sample as GradeSample, ctx), name)
  return register({ name, run } as RunnableDefinition, module, [grade])
}

function checkDefinition<D extends { readonly name: string; readonly grade: unknown }>(definition: D): D {
  const wrong = (what: string) => new ManyworldsError('GRADER_INVALID', `defineGrader: ${what}`)
  if (typeof definition !== 'object' || definition === null)
    throw wrong('give one object: defineGrader({ name: "…", grade: ({ answer, groundTruth }) => … })')
  const { name, grade } = definition
  if (typeof name !== 'string' || name === '') throw wrong('`name` must be a non-empty string')
  if (typeof grade !== 'function')
    throw wrong(`\`grade\` of grader '${name}' must be a function, it is ${typeof grade}`)
  const known = ['name', 'grade', 'params', 'trajectory', 'evaluationOnly', 'module']
  const unknown = Object.keys(definition).find((key) => !known.includes(key))
  if (unknown !== undefined) throw wrong(`unknown key '${unknown}' in grader '${name}'; allowed: ${known.join(', ')}`)
  return definition
}

/** The grader of a task's answer: its own, or that of the run, or that of its agent. */
export const graderFor = (task: Pick<TaskLike, 'grade' | 'agent'>, ofRun: Grader | undefined): Grader | undefined =>
  task.grade ?? ofRun ?? task.agent.grader

/** Returns the grader with other options. */
export const withOptions = (grader: Grader, params: unknown): Grader => graderOf(grader.ref, params, grader)

type Traits = Pick<GraderDefinition<unknown, unknown, unknown>, 'trajectory' | 'evaluationOnly'>

function graderOf(ref: AgentRef, params: unknown, { trajectory = false, evaluationOnly = false }: Traits): Grader {
  const source = JSON.stringify([ref.name, ref.fingerprint ?? null, params ?? null])
  const sha256 = hash('sha256', source)
  return { kind: 'grader', name: ref.name, ref, params, trajectory, sha256, ...(evaluationOnly && { evaluationOnly }) }
}

export const isGrader = (value: unknown): value is Grader =>
  typeof value === 'object' && value !== null && (value as Partial<Grader>).kind === 'grader'
