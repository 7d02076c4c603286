import { escapeControls, oneLine } from '../../text/escape-controls.ts'
import { painter, wantsColor } from '../../text/paint.ts'
import { clock, count, counted } from '../../text/quantities.ts'
import type { EpochReport } from '../../train/pipeline/epoch-report.ts'
import type { ObserveTraining, TrainingStart } from '../../train/pipeline/observer.ts'
import { surviveErrors } from '../survive-errors.ts'
import { NewAlarms } from './alarms.ts'
import { evaluationText, valueText } from './figure-text.ts'
import { trainingLine } from './line.ts'
import { trainingSummary } from './summary.ts'
import { TrainingTally } from './tally.ts'

/** If nothing was printed for this long, a line shows that the training is still running. */
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
      stream.write(`[${escapeControls(start.id)}] ${line}\n`)
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
      notice: (line) => say(escapeControls(line)),
      end(ending) {
        clearInterval(timer)
        stream.write(`${trainingSummary(tally, ending, { color: wantsColor(stream) })}\n`)
      },
    }
  }
}

function startLine({ tasks, engineName, workerNum, concurrency, updates, file }: TrainingStart): string {
  const workers = workerNum === undefined ? 'all workers' : counted(workerNum, 'worker')
  const parts = [`${counted(tasks.train, 'task')}, ${tasks.validation} for validation, ${tasks.test} for the test`]
  parts.push(`on ${engineName}, ${workers} x ${concurrency}`)
  if (file !== undefined) parts.push(escapeControls(file))
  return `${updates.length > 0 ? `resumed after ${counted(updates.length, 'update')}` : 'started'}: ${parts.join('; ')}`
}

/** The result of an epoch, on one line. */
function epochLine(report: EpochReport, epochs: number): string {
  const { epoch, updates, version, successRate, reward, validation, test } = report
  const judged = validation && evaluationText(validation)
  const tested = test && evaluationText(test)
  const parts = [
    `epoch ${count(epoch)}${Number.isFinite(epochs) ? `/${count(epochs)}` : ''}: ${count(updates)} updates, version ${version}`,
    successRate === null
      ? `reward ${reward === null ? 'none' : valueText(reward, 'reward')}`
      : `success ${valueText(successRate, 'success')}`,
    ...(judged ? [`validation ${judged}`] : []),
    ...(tested ? [`test ${tested}`] : []),
  ]
  return parts.join('; ')
}
