import { Writable } from 'node:stream'
import { chooseDisplay } from '../../progress/choose.ts'
import type { ObserveRun } from '../../progress/observer.ts'
import { summaryOnly } from '../../progress/summary-only.ts'
import { chooseTrainingDisplay } from '../../progress/training/choose.ts'
import { trainingSummaryOnly } from '../../progress/training/summary-only.ts'
import type { ObserveTraining } from '../../train/pipeline/observer.ts'

interface Wishes {
  readonly json: boolean
  readonly quiet: boolean
  readonly noProgress: boolean
}

/** How the runs and the trainings of a script are shown. */
export function displaysOf({ json, quiet, noProgress }: Wishes): {
  display: ObserveRun | undefined
  displayTraining: ObserveTraining | undefined
  /** Where results are printed; undefined: not at all. */
  out: NodeJS.WritableStream | undefined
} {
  if (quiet && !json) return { display: undefined, displayTraining: undefined, out: undefined }
  const out = process.stdout
  if (noProgress && !json)
    return { display: summaryOnly(process.stderr), displayTraining: trainingSummaryOnly(process.stderr), out }
  const stream = json ? takeStdout() : process.stderr
  return {
    display: chooseDisplay({ json, quiet, progress: true, stream }),
    displayTraining: chooseTrainingDisplay({ json, stream }),
    out: json ? stream : out,
  }
}

/** With `--json`, the output of the script goes to stderr, so that every line of stdout is JSON. */
function takeStdout(): NodeJS.WritableStream {
  const write = process.stdout.write.bind(process.stdout)
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write
  return new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      write(chunk, () => done())
    },
  })
}
