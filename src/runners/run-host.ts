import type { ObserveRun } from '../progress/observer.ts'
import type { RunConfig } from '../run-config.ts'
import type { ObserveTraining } from '../train/pipeline/observer.ts'

/** A run in progress. */
export interface RunControl {
  readonly runId: string
  readonly file: string | undefined
  /** Tasks that are with a worker now, or whose answers wait for their grade. */
  running(): number
  /** Starts no more tasks. Running tasks and graders have `graceMs` to finish and are then cancelled. */
  stop(graceMs: number): void
}

/** Settings that override those of each training in the script. */
export interface TrainingOverrides {
  readonly epochs?: number
  readonly tasksPerEpoch?: number
  readonly overlap?: boolean
  /** Sinks in addition to the script's, written as in `log` of a pipeline. */
  readonly log?: readonly string[]
}

/** A program around the user's script, such as the command line: it may change how runs are made, and is told of them. */
export interface RunHost {
  configure(config: RunConfig): RunConfig
  /** The words after the program's name that started it, as they may be stored. */
  readonly command?: readonly string[]
  readonly observe: ObserveRun
  readonly observeTraining?: ObserveTraining
  readonly training?: TrainingOverrides
  /** A sweep begins. Of its trainings, those that are finished are not observed. */
  sweep?(): void
  /** Called with the progress of a long data step, such as reading a table. Left out: no progress is wanted. */
  dataStep?(line: string): void
  started(run: RunControl): void
  /** The run is over. True: don't tell its caller, because the program ends now. */
  ended(run: RunControl): boolean
}

// On globalThis: the script may bring another copy of this package than the program around it.
const RUN_HOST = Symbol.for('manyworlds.runHost')
const holder = globalThis as unknown as { [RUN_HOST]?: RunHost }

export const runHost = (): RunHost | undefined => holder[RUN_HOST]

export function setRunHost(host: RunHost): void {
  holder[RUN_HOST] = host
}
