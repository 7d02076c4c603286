import type { ObserveTraining } from '../../train/pipeline/observer.ts'
import { canBeRedrawn } from '../choose.ts'
import { jsonTraining } from './json.ts'
import { liveTraining } from './live.ts'
import { plainTraining } from './plain.ts'

/** The display for a training on this stream: for people on stderr, or as JSON, usually on stdout. */
export function chooseTrainingDisplay({
  json,
  stream,
}: {
  readonly json: boolean
  readonly stream: NodeJS.WritableStream
}): ObserveTraining {
  if (json) return jsonTraining(stream)
  return canBeRedrawn(stream) ? liveTraining(stream) : plainTraining(stream)
}
