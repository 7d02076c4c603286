import { chooseDisplay } from './choose.ts'
import type { ObserveRun } from './observer.ts'
import { progressCallback } from './progress-callback.ts'
import type { RunProgress } from './run-progress.ts'

/** What `progress` in a RunConfig asks for. */
export const observeProgress = (progress: true | ((progress: RunProgress) => void)): ObserveRun =>
  progress === true
    ? chooseDisplay({ progress, json: false, quiet: false, stream: process.stderr })!
    : progressCallback(progress)
