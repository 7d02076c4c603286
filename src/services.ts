/** What a service is told about the request and its task. */
export interface ServiceContext {
  readonly runId: string
  readonly taskId: string
  readonly attempt: number
  /** Aborted when the request is over: answered, cancelled, or ended with its task. */
  readonly signal: AbortSignal
}

/**
 * A service: called in the driver's process with the question of a task. Returns a value, a promise of one, or an async
 * iterable of parts. If it throws, the task gets an error with the same message.
 */
// biome-ignore lint/suspicious/noExplicitAny: whatever the task asks, as the answers of agents
export type ServiceFunction = (question: any, ctx: ServiceContext) => unknown

/** A service with settings. */
export interface ServiceDefinition {
  readonly answer: ServiceFunction
  /**
   * Its answers are stored in the run file before tasks get them. An attempt that is run again, because its worker or the
   * driver died, gets the stored answers, and the service is not called. Default false.
   */
  readonly durable?: boolean
  /** How many requests it is called for at the same time; the others wait, and tasks take turns. Default: no limit. */
  readonly atOnce?: number
}
