import { escapeControls } from '../text/escape-controls.ts'
import { painter, wantsColor } from '../text/paint.ts'
import { clock, counted } from '../text/quantities.ts'
import { combined } from './combined.ts'
import type { ObserveRun, RunStart } from './observer.ts'
import { statusLine } from './status-line.ts'
import { sampleText, summaryText } from './summary.ts'
import { surviveErrors } from './survive-errors.ts'
import { finishedTask, Tally } from './tally.ts'

const EVERY_MS = 10_000
/** Each quarter of the tasks also gets a line, unless one was printed within this time. */
const QUARTER_MS = 2000

/** For a log: a line at the start, one about every ten seconds, and the summary at the end. */
export function plainLines(stream: NodeJS.WritableStream = process.stderr): ObserveRun {
  surviveErrors(stream)
  return (start) => {
    const tally = new Tally(start)
    const say = (line: string) => void stream.write(`[${escapeControls(start.runId)}] ${line}\n`)
    let saidAt = performance.now()
    let done = 0
    let quarter = 0
    let total = start.total
    const sayProgress = () => {
      saidAt = performance.now()
      const progress = tally.snapshot()
      const line = statusLine(combined([progress]), {
        width: Number.POSITIVE_INFINITY,
        paint: painter(false),
        bar: false,
      })
      say(`${clock(progress.elapsedMs)}  ${line}`)
      timer.refresh()
    }
    const timer = setInterval(sayProgress, EVERY_MS).unref()
    say(startLine(start))
    return {
      response(response) {
        tally.add(finishedTask(response))
        done++
        if (!total || Math.floor((4 * done) / total) === quarter || done >= total) return
        quarter = Math.floor((4 * done) / total)
        if (performance.now() - saidAt >= QUARTER_MS) sayProgress()
      },
      notRun: (response) => tally.notRun(response),
      retry: () => tally.retried(),
      total(tasks) {
        total = tasks
        quarter = Math.floor((4 * done) / tasks)
        tally.setTotal(tasks)
      },
      notice: (line) => say(escapeControls(line)),
      end(ending) {
        clearInterval(timer)
        stream.write(`${summaryText(tally, { ending, file: start.file, color: wantsColor(stream) })}\n`)
      },
    }
  }
}

function startLine({ total, sampledFrom, engineName, workerNum, concurrency, resumed, file }: RunStart): string {
  const sample = sampleText(total, sampledFrom)
  const tasks = `${total === undefined ? 'tasks' : counted(total, 'task')}${sample === '' ? '' : `${sample},`}`
  const workers = workerNum === undefined ? 'all workers' : counted(workerNum, 'worker')
  const where = `on ${engineName}, ${workers} x ${concurrency}`
  return `${resumed ? 'resumed' : 'started'}: ${tasks} ${where}${file === undefined ? '' : `; ${escapeControls(file)}`}`
}
