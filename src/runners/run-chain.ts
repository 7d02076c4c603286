import type { RunRecorder } from '../executor/recorder.ts'
import type { RunSink } from '../executor/run.ts'
import type { TaskSource } from '../executor/source.ts'
import type { RecordedRun } from '../store/recorded-run.ts'
import type { Budgeted } from './budgeted.ts'
import type { Grading } from './grading.ts'
import type { Observation } from './observation.ts'

interface Stages {
  /** Undefined for a run without a file. */
  readonly recorded: RecordedRun | undefined
  readonly grading: Grading
  /** Undefined for a run without a budget. */
  readonly budgeted: Budgeted | undefined
  readonly observation: Observation
  /** Set if a program around the script, such as `manyworlds run`, may stop the run. */
  readonly stopped: (() => boolean) | undefined
  /** There is room for more tasks. */
  wake(): void
}

interface RunChain {
  readonly source: TaskSource
  readonly sink: RunSink
  readonly recorder: RunRecorder | undefined
}

/**
 * The stages between a run's caller and the dispatcher:
 *
 *     tasks       caller ──► run file (or count) ──► budget ──► grading ──► dispatcher
 *     responses   dispatcher ──► run file ──► grading ──► budget ──► observers ──► stop filter ──► caller
 *     the rest    dispatcher ──► observers ──► run file
 *
 * A response is committed before it is graded, and graded before observers and the caller see it.
 */
export function runChain(tasks: TaskSource, caller: RunSink, stages: Stages): RunChain {
  const { recorded, grading, budgeted, observation, stopped, wake } = stages
  return {
    source: pass(tasks, [
      // The source of a recorded run reads from `tasks` itself, and tells the observers how many there were.
      (source) => recorded?.source ?? observation.wrapSource(source),
      (source) => budgeted?.wrapSource(source) ?? source,
      (source) => grading.wrapSource(source),
    ]),
    sink: passBackwards(caller, [
      (next) => recorded?.recording.wrapSink(next, wake) ?? next,
      (next) => grading.wrapSink(next),
      (next) => budgeted?.wrapSink(next) ?? next,
      (next) => observation.wrapSink(next),
      (next) => (stopped ? withoutCancelled(next, stopped) : next),
    ]),
    recorder: observation.wrapRecorder(recorded?.recording),
  }
}

type Stage<Part> = (next: Part) => Part

/** Tasks pass the first stage first. */
const pass = <Part>(first: Part, stages: readonly Stage<Part>[]): Part =>
  stages.reduce((part, stage) => stage(part), first)

/** Responses pass the first stage first too; since each stage is given the next one, the last is made first. */
const passBackwards = <Part>(last: Part, stages: readonly Stage<Part>[]): Part =>
  stages.reduceRight((part, stage) => stage(part), last)

/** If the program around the script stops a run, the script must not take cancelled tasks for outcomes. */
const withoutCancelled = (sink: RunSink, stopped: () => boolean): RunSink => ({
  ...sink,
  response(index, response, bytes, entry) {
    if (!stopped() || response.status !== 'cancelled') sink.response(index, response, bytes, entry)
  },
})
