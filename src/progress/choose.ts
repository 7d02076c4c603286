import { isMainThread } from 'node:worker_threads'
import { jsonLines } from './json-lines.ts'
import { liveLine } from './live-line.ts'
import type { ObserveRun } from './observer.ts'
import { plainLines } from './plain-lines.ts'
import { progressCallback } from './progress-callback.ts'
import type { RunProgress } from './run-progress.ts'

interface Wishes {
  readonly progress: boolean
  /** Takes precedence over the others, because it is the output itself. */
  readonly json: boolean
  readonly quiet: boolean
  /** The stream to write to: stderr for people, usually stdout for JSON. */
  readonly stream: NodeJS.WritableStream
}

/** The display for a run on this stream; undefined: none. */
export function chooseDisplay({ progress, json, quiet, stream }: Wishes): ObserveRun | undefined {
  if (json) return jsonLines(stream)
  if (quiet || !progress) return undefined
  return canBeRedrawn(stream) ? liveLine(stream) : plainLines(stream)
}

/** The display for `progress` of a RunConfig. */
export const observeProgress = (progress: true | ((progress: RunProgress) => void)): ObserveRun =>
  progress === true
    ? chooseDisplay({ progress, json: false, quiet: false, stream: process.stderr })!
    : progressCallback(progress)

/** Only in the main thread: in other threads, the streams are not the terminal itself. */
export const canBeRedrawn = (stream: NodeJS.WritableStream): stream is NodeJS.WriteStream =>
  isMainThread && (stream as NodeJS.WriteStream).isTTY === true && process.env.TERM !== 'dumb'
