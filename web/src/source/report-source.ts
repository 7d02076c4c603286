import type { Report, ReportedRun, SearchLine } from '../../../src/view/api.ts'
import { openedTasks } from './report-parts.ts'
import { searchReport } from './search-report.ts'
import { type Source, SourceError } from './source.ts'

/** Reads the data of a report file: JSON, compressed with gzip and written as Base64. */
export async function reportSource(base64: string): Promise<Source> {
  const report = await unpack(base64.trim())
  const runOf = (run: string): ReportedRun => own(report.runs, run) ?? missing(`run '${run}'`)
  const opened = openedTasks(report.parts)
  const taskOf = (run: string, task: string) => opened.get(run)?.get(task) ?? missing(`task '${task}'`)
  return {
    start: report.start,
    report,
    runs: async () => report.list,
    figures: async (run) => own(report.figures, run) ?? { usage: {} },
    run: async (run) => runOf(run).details,
    evaluation: async (run) => runOf(run).details.evaluation ?? null,
    async *tasks(run) {
      yield* runOf(run).tasks
    },
    async *attempts(run) {
      yield* runOf(run).attempts
    },
    async *search(run, text, signal): AsyncGenerator<SearchLine> {
      yield* searchReport(runOf(run), opened.get(run), text, signal)
    },
    task: async (run, task) => taskOf(run, task).task,
    value: async ({ of }) => missing(`the whole ${of}`),
    async *steps({ run, task, start, from = 0 }) {
      for (const line of taskOf(run, task).steps[start] ?? []) if (line.step.index >= from) yield line
    },
    step: async ({ run, task, start }, index) =>
      taskOf(run, task).steps[start]?.find(({ step }) => step.index === index) ?? missing(`step ${index}`),
    logs: async (run, task, attempt) =>
      taskOf(run, task).task.attempts.find((one) => one.attempt === attempt)?.logs ?? { lines: [], left: 0 },
    training: async (training) => own(report.trainings, training) ?? missing(`training '${training}'`),
    compare: async (a, b) =>
      report.comparisons.find((one) => one.a === a && one.b === b) ?? missing(`the comparison of '${a}' and '${b}'`),
    watch: () => () => {},
  }
}

/** Reads own properties only, because an id may be the name of an inherited property, such as `constructor`. */
const own = <Value>(values: Readonly<Record<string, Value>>, key: string): Value | undefined =>
  Object.hasOwn(values, key) ? values[key] : undefined

async function unpack(base64: string): Promise<Report> {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
  const text = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')))
  return (await text.json()) as Report
}

function missing(what: string): never {
  throw new SourceError(
    'NOT_IN_REPORT',
    `this report does not contain ${what}. Open the run with "manyworlds view" to see it`,
  )
}
