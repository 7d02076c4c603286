/** What a service knows of the task that asks. */
export interface ServiceContext {
  readonly runId: string
  readonly taskId: string
  readonly attempt: number
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

/**
 * Answers what tasks ask, in the driver's process: with a value, a promise of one, or an async iterable of parts. What it
 * throws, the task gets as an error.
 */
// biome-ignore lint/suspicious/noExplicitAny: whatever the task asks, as the answers of agents
export type ServiceFunction = (question: any, ctx: ServiceContext) => unknown

export interface ServiceDefinition {
  readonly answer: ServiceFunction
  /**
   * Its answers are in the run file before tasks get them. An attempt that is run again, because its worker or the driver
   * died, gets them from there, and the service is not asked. Default false.
   */
  readonly durable?: boolean
  /** How many requests it is given at once; tasks take turns. Default: all there are. */
  readonly atOnce?: number
}
