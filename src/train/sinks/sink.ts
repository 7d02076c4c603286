/** What a sink is told when a training starts or resumes. */
export interface TrainingAbout {
  /** The same when a training resumes, so that its earlier data can be found. */
  readonly trainingId: string
  /** The settings of the training, as JSON. */
  readonly config?: unknown
}

/**
 * A destination for the metrics of a training: TensorBoard, MLflow, your own. Calls are made one at a time, each after the previous one has settled. A
 * sink that throws, or takes longer than 30 seconds, is reported once and disabled; the training continues and never waits for it.
 *
 * After a resume, the last step may be repeated with the same values, because the training may have been killed before the call.
 *
 * @example
 * const lines: TrainingSink = { name: 'lines', scalars: (step, values) => console.log(step, values.successRate) }
 */
export interface TrainingSink {
  /** For messages. */
  readonly name?: string
  /** Called first. */
  open?(about: TrainingAbout): void | Promise<void>
  /** Metrics of one step, by name. All are finite. `at` is in milliseconds since 1970. */
  scalars(step: number, values: Readonly<Record<string, number>>, at: number): void | Promise<void>
  /** A text about a step, such as an alarm. */
  text?(step: number, name: string, text: string, at: number): void | Promise<void>
  /** Called last, even if the training failed. */
  close?(): void | Promise<void>
}
