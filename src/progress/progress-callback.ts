import type { ObserveRun } from './observer.ts'
import type { RunProgress } from './run-progress.ts'
import { finishedTask, Tally } from './tally.ts'

const EVERY_MS = 1000

/** Calls back with the progress about once a second if something has changed, and once at the end. */
export function progressCallback(callback: (progress: RunProgress) => void): ObserveRun {
  return (start) => {
    const tally = new Tally(start)
    let news = true
    const timer = setInterval(() => {
      // While all calls wait for a model, nothing changes, but the waiting itself is reported.
      if (news || start.models?.waiting.length) callback(tally.snapshot())
      news = false
    }, EVERY_MS).unref()
    return {
      response(response) {
        news = true
        tally.add(finishedTask(response))
      },
      retry() {
        news = true
        tally.retried()
      },
      total: (tasks) => tally.setTotal(tasks),
      notice: () => {},
      end() {
        clearInterval(timer)
        callback(tally.snapshot())
      },
    }
  }
}
