import type { ReportedRun, SearchHit, SearchLine, SearchPlace } from '../../../src/view/api.ts'
import type { OpenedTask } from './report-parts.ts'

const MAX_HITS = 1000
const EXCERPT = 60
/** The number of tasks between two pauses, which keep the page responsive. */
const AT_ONCE = 200

/** Searches the tasks of a report. Tasks that were left out are found only by their ids. */
export async function* searchReport(
  run: ReportedRun,
  opened: ReadonlyMap<string, OpenedTask> | undefined,
  text: string,
  signal: AbortSignal,
): AsyncGenerator<SearchLine> {
  const wanted = text.toLowerCase()
  let hits = 0
  let searched = 0
  const of = run.tasks.reduce((sum, { id }) => sum + id.length, 0)
  for (const chunk of run.tasks)
    for (const [row, id] of chunk.id.entries()) {
      if (++searched % AT_ONCE === 0) {
        yield { kind: 'progress', searched, of }
        await new Promise((done) => setTimeout(done))
        if (signal.aborted) return
      }
      for (const hit of hitsIn(opened?.get(id), chunk.task[row]!, id, wanted)) {
        yield { kind: 'hit', hit }
        if (++hits === MAX_HITS) return yield { kind: 'end', hits, limited: true }
      }
    }
  yield { kind: 'end', hits, limited: false }
}

function* hitsIn(opened: OpenedTask | undefined, task: number, id: string, wanted: string): Generator<SearchHit> {
  const find = (place: SearchPlace, text: string | undefined): SearchHit[] => {
    const at = text?.toLowerCase().indexOf(wanted) ?? -1
    if (text === undefined || at < 0) return []
    const from = Math.max(0, at - EXCERPT)
    const excerpt = text.slice(from, at + wanted.length + EXCERPT)
    return [{ task, id, place, excerpt, from: at - from, length: wanted.length }]
  }
  yield* find('id', id)
  if (!opened) return
  yield* find('input', JSON.stringify(opened.task.input))
  for (const { answer, error, logs } of opened.task.attempts) {
    yield* find('answer', JSON.stringify(answer))
    yield* find('error', error && `${error.code}: ${error.message}`)
    yield* find('log', logs.lines.join('\n'))
  }
  for (const [start, steps] of Object.entries(opened.steps))
    for (const { step } of steps) {
      const attempt = opened.task.attempts.find((one) => one.start === Number(start))?.attempt ?? 1
      for (const hit of find('step', JSON.stringify(step))) yield { ...hit, attempt, step: step.index }
    }
}
