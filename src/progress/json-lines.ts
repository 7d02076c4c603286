import type { TaskResponse } from '../task.ts'
import { jsonLine } from '../text/json.ts'
import type { ObserveRun } from './observer.ts'
import { summaryData } from './summary-data.ts'
import { surviveErrors } from './survive-errors.ts'
import { finishedTask, Tally } from './tally.ts'

const PROGRESS_MS = 1000

/** For programs: one JSON object per line for each event, with its `type`, `runId`, and `at`, its time in epoch milliseconds. */
export function jsonLines(stream: NodeJS.WritableStream = process.stdout): ObserveRun {
  surviveErrors(stream)
  return (start) => {
    const tally = new Tally(start)
    const { runId } = start
    const say = (type: string, fields: object) =>
      void stream.write(`${jsonLine({ type, runId, at: Date.now(), ...fields })}\n`)
    const timer = setInterval(() => say('progress', tally.snapshot()), PROGRESS_MS).unref()
    const { file, total, sampledFrom, engineName, workerNum, concurrency, resumed } = start
    say('start', { file, total, sampledFrom, engineName, workerNum, concurrency, resumed })
    return {
      response(response) {
        tally.add(finishedTask(response))
        say('response', responseFields(response))
      },
      notRun: (response) => tally.notRun(response),
      retry(id, code, message) {
        tally.retried()
        say('retry', { id, code, message })
      },
      total(tasks) {
        tally.setTotal(tasks)
        say('total', { total: tasks })
      },
      notice: (message) => say('notice', { message }),
      end(ending) {
        clearInterval(timer)
        say('summary', summaryData(tally, { ending, file }))
      },
    }
  }
}

/** Without the trajectory and the logs, which are in the run file. */
function responseFields(response: TaskResponse): object {
  const { id, status, success, agentName, answer, error, attempts, timing, worker, usage, restored } = response
  const { groupId, rollout, grade, digest } = response
  // An answer may be undefined, which JSON would leave out.
  const outcome = success ? { answer: answer ?? null } : { error }
  return {
    id,
    status,
    success,
    agentName,
    ...outcome,
    attempts,
    timing,
    worker,
    usage,
    restored,
    groupId,
    rollout,
    grade,
    digest,
  }
}
