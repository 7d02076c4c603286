import { painter, wantsColour } from '../../text/paint.ts'
import { clock, counted } from '../../text/quantities.ts'
import { oneLine, visible } from '../../text/visible.ts'
import type { ObserveTraining, TrainingStart } from '../../train/pipeline/observer.ts'
import { surviveErrors } from '../survive-errors.ts'
import { NewAlarms } from './alarms.ts'
import { epochLine } from './epoch-line.ts'
import { trainingLine } from './line.ts'
import { trainingSummary } from './summary.ts'
import { TrainingTally } from './tally.ts'

/** If nothing was said for so long, a line says that it goes on. */
const HEARTBEAT_MS = 30_000

/** For a log: a line at the start and for each epoch, and the summary at the end. */
export function plainTraining(
  stream: NodeJS.WritableStream = process.stderr,
  heartbeatMs: number = HEARTBEAT_MS,
): ObserveTraining {
  surviveErrors(stream)
  return (start) => {
    const tally = new TrainingTally(start)
    const alarms = new NewAlarms()
    const say = (line: string) => {
      stream.write(`[${visible(start.id)}] ${line}\n`)
      timer.refresh()
    }
    const sayProgress = () => {
      const progress = tally.snapshot()
      const layout = { width: Number.POSITIVE_INFINITY, paint: painter(false), bar: false }
      say(`${clock(progress.elapsedMs)}  ${trainingLine(progress, layout)}`)
    }
    const timer = setInterval(sayProgress, heartbeatMs).unref()
    say(startLine(start))
    return {
      goal: (goal) => tally.goal(goal),
      run: (...run) => tally.run(...run),
      episode: (runId, restored) => tally.episode(runId, restored),
      update(row) {
        tally.update(row)
        for (const alarm of alarms.of(row)) say(oneLine(alarm))
      },
      evaluation: (row) => tally.evaluation(row),
      epoch(report) {
        tally.epoch(report)
        const { elapsedMs, epochs } = tally.snapshot()
        say(`${clock(elapsedMs)}  ${epochLine(report, epochs)}`)
      },
      notice: (line) => say(visible(line)),
      end(ending) {
        clearInterval(timer)
        stream.write(`${trainingSummary(tally, ending, { colour: wantsColour(stream) })}\n`)
      },
    }
  }
}

function startLine({ tasks, engineName, workerNum, concurrency, updates, file }: TrainingStart): string {
  const workers = workerNum === undefined ? 'all workers' : counted(workerNum, 'worker')
  const parts = [`${counted(tasks.train, 'task')}, ${tasks.validation} for validation, ${tasks.test} for the test`]
  parts.push(`on ${engineName}, ${workers} x ${concurrency}`)
  if (file !== undefined) parts.push(visible(file))
  return `${updates.length > 0 ? `resumed after ${counted(updates.length, 'update')}` : 'started'}: ${parts.join('; ')}`
}
