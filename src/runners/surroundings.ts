import type { ObserveRun } from '../progress/observer.ts'
import type { RunConfig } from '../run-config.ts'
import type { ObserveTraining } from '../train/pipeline/observer.ts'

/** A run that is going on. */
export interface RunControl {
  readonly runId: string
  readonly file: string | undefined
  /** Tasks that are with a worker now. */
  running(): number
  /** Starts nothing more. What is running may finish for `graceMs`, and is cancelled then. */
  stop(graceMs: number): void
}

/** What goes over what the script says of each training. */
export interface TrainingOverrides {
  readonly epochs?: number
  readonly tasksPerEpoch?: number
  /** Sinks beside those of the script, as `log` of a pipeline names them. */
  readonly log?: readonly string[]
}

/** A program around the user's script, such as the command line: it may change how runs are made, and is told of them. */
export interface Surroundings {
  configure(config: RunConfig): RunConfig
  readonly observe: ObserveRun
  readonly observeTraining?: ObserveTraining
  readonly training?: TrainingOverrides
  /** A sweep begins. Of its trainings, those that are finished are not observed. */
  sweep?(): void
  started(run: RunControl): void
  /** The run is over; true: its caller shall not be told, because the program ends now. */
  ended(run: RunControl): boolean
}

// On globalThis: the script may bring another copy of this package than the program around it.
const SURROUNDINGS = Symbol.for('manyworlds.surroundings')
const holder = globalThis as unknown as { [SURROUNDINGS]?: Surroundings }

export const surroundings = (): Surroundings | undefined => holder[SURROUNDINGS]

export function surround(by: Surroundings): void {
  holder[SURROUNDINGS] = by
}
