import { TaskError, type TaskErrorCode } from './errors.ts'
import type { TaskGrade } from './grade/grade.ts'
import type { ErrorItem, Packed } from './protocol/messages.ts'
import { readPacked } from './protocol/read-packed.ts'
import type { TaskResponse, TaskStatus, WorkerName } from './task.ts'
import type { Step } from './trajectory/step.ts'
import type { Trajectory } from './trajectory/trajectory.ts'
import type { TrajectoryContext } from './trajectory/trajectory-of.ts'
import type { Usage } from './trajectory/usage.ts'

/** The error of a response, from what came over the wire. */
export function taskError(item: ErrorItem, stackOf: (stack: string) => string = (stack) => stack): TaskError {
  const options: { name: string; stack?: string; cause?: unknown } = { name: item.name }
  if (item.stack !== undefined) options.stack = stackOf(item.stack)
  if ('thrown' in item) options.cause = causeOf(item.thrown, stackOf)
  return new TaskError(item.code, item.message, options)
}

/** The thrown value. Undefined if it cannot be read: the error is complete without it. */
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

/** Where a response reads its steps from, if it does not carry them. */
export interface StepSource {
  read(): readonly Step[]
  stream(): AsyncIterable<Step>
}

/** Gives what trajectories need in addition to the responses. One for all responses of a run. */
export interface TrajectorySource {
  /** The rest of the trajectory of a task. `attempts`: how many attempts it took. */
  around(id: string, attempts: number): Promise<TrajectoryContext>
}

/** The status of a task, with its answer or error. */
export type ResponseEnd =
  | { readonly success: true; readonly status: 'success'; readonly answer: unknown }
  | { readonly success: false; readonly status: Exclude<TaskStatus, 'success'>; readonly error: TaskError }

type Rare = 'groupId' | 'rollout' | 'episode' | 'grade' | 'digest' | 'removedSteps'
type Made = 'success' | 'status' | 'answer' | 'error' | 'trajectory' | 'steps' | 'toTrajectory'
type ResponseBase = Omit<TaskResponse, Made | Rare> & {
  readonly [Field in Rare]?: TaskResponse[Field] | undefined
}

/** The properties of every response; assigned one by one for speed, because this is made for every task. */
abstract class BaseResponse {
  declare readonly id: string
  declare readonly success: boolean
  declare readonly status: TaskStatus
  declare readonly answer: unknown
  declare readonly error: TaskError
  declare readonly agentName: string
  declare readonly usage: Usage
  declare readonly timing: TaskResponse['timing']
  declare readonly attempts: number
  declare readonly worker: WorkerName | undefined
  declare readonly logs: readonly string[]
  declare readonly restored: boolean
  declare readonly groupId: string
  declare readonly rollout: number
  declare readonly episode: TaskResponse['episode']
  declare readonly grade: TaskGrade
  declare readonly digest: string
  declare readonly removedSteps: number
  readonly #around: TrajectorySource | undefined

  constructor(base: ResponseBase, end: ResponseEnd, around: TrajectorySource | undefined) {
    this.#around = around
    this.id = base.id
    this.success = end.success
    this.status = end.status
    if (end.success) this.answer = end.answer
    else this.error = end.error
    this.agentName = base.agentName
    this.usage = base.usage
    this.timing = base.timing
    this.attempts = base.attempts
    this.worker = base.worker
    this.logs = base.logs
    this.restored = base.restored
    // Most have none of these.
    if (base.groupId !== undefined) this.groupId = base.groupId
    if (base.rollout !== undefined) this.rollout = base.rollout
    if (base.episode !== undefined) this.episode = base.episode
    if (base.grade !== undefined) this.grade = base.grade
    if (base.digest !== undefined) this.digest = base.digest
    if (base.removedSteps !== undefined) this.removedSteps = base.removedSteps
  }

  abstract steps(): AsyncIterable<Step>

  async toTrajectory(): Promise<Trajectory> {
    // Loaded on first use: most programs never need it.
    const { trajectoryOf } = await import('./trajectory/trajectory-of.ts')
    const steps: Step[] = []
    for await (const step of this.steps()) steps.push(step)
    return trajectoryOf(this, steps, await this.#around?.around(this.id, this.attempts))
  }
}

/** Adds the grade to a response that was not passed on yet. */
export function setGrade(response: TaskResponse, grade: TaskGrade): void {
  ;(response as { grade?: TaskGrade }).grade = grade
}

/** A response that carries its steps. */
class CarryingResponse extends BaseResponse {
  declare readonly trajectory: readonly Step[]

  constructor(base: ResponseBase, end: ResponseEnd, steps: readonly Step[], around: TrajectorySource | undefined) {
    super(base, end, around)
    this.trajectory = steps
  }

  async *steps(): AsyncGenerator<Step> {
    yield* this.trajectory
  }
}

/** A response whose steps are read from the store on access, so that many responses take little memory. */
class StoredResponse extends BaseResponse {
  readonly #source: StepSource

  constructor(base: ResponseBase, end: ResponseEnd, source: StepSource, around: TrajectorySource | undefined) {
    super(base, end, around)
    this.#source = source
  }

  get trajectory(): readonly Step[] {
    return this.#source.read()
  }

  steps(): AsyncIterable<Step> {
    return this.#source.stream()
  }
}

// Printed responses show this name instead of an internal one.
for (const made of [CarryingResponse, StoredResponse]) Object.defineProperty(made, 'name', { value: 'TaskResponse' })

export function makeResponse(
  base: ResponseBase,
  end: ResponseEnd,
  steps: readonly Step[] | StepSource,
  around?: TrajectorySource,
): TaskResponse {
  const response =
    'read' in steps ? new StoredResponse(base, end, steps, around) : new CarryingResponse(base, end, steps, around)
  // The compiler does not see that `success` decides which of `answer` and `error` exists.
  return response as unknown as TaskResponse
}

/** A response as a plain object with its steps, which may be read from the store; without steps if they were removed. */
export const withTrajectory = (response: TaskResponse): object => ({
  ...response,
  ...(response.removedSteps === undefined && { trajectory: response.trajectory }),
})

/** A response as plain data: how a parent in a worker gets those of its sub-tasks. */
export function responseToWire(response: TaskResponse): unknown {
  return { ...withTrajectory(response), ...(response.success ? {} : { error: plainError(response.error) }) }
}

export function responseFromWire(wire: unknown): TaskResponse {
  const response = wire as TaskResponse
  const { success, status } = response
  const end: ResponseEnd = success
    ? { success, status, answer: response.answer }
    : { success, status, error: errorFromPlain(response.error) }
  // One whose steps were removed has none.
  return makeResponse(response, end, response.trajectory ?? [])
}
