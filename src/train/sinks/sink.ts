/** What a sink is told when a training starts, or goes on. */
export interface TrainingAbout {
  /** The same when a training goes on: what belongs to it can be found again. */
  readonly trainingId: string
  /** The settings of the training, as JSON. */
  readonly config?: unknown
}

/**
 * Somewhere to watch a training: TensorBoard, MLflow, your own. Calls come one after the other, each after the one before has settled. A
 * sink that throws, or takes longer than half a minute, is reported once and left out; the training goes on, and never waits for it.
 *
 * After a resume, the last step may come again, with the same values: its training may have been killed before it was told.
 *
 * @example
 * const lines: TrainingSink = { name: 'lines', scalars: (step, values) => console.log(step, values.successRate) }
 */
export interface TrainingSink {
  /** For messages. */
  readonly name?: string
  /** Before anything else. */
  open?(about: TrainingAbout): void | Promise<void>
  /** Figures of one step, by name. All of them are finite. `at` is in milliseconds since 1970. */
  scalars(step: number, values: Readonly<Record<string, number>>, at: number): void | Promise<void>
  /** Words about a step, such as an alarm. */
  text?(step: number, name: string, text: string, at: number): void | Promise<void>
  /** After everything else, also if the training failed. */
  close?(): void | Promise<void>
}
