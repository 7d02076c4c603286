import type { PagedRun } from '../../store/paged/paged-run.ts'
import {
  type AttemptTexts,
  attemptTexts,
  isLarge,
  startsOfTasks,
  stepBodies,
  taskTexts,
} from '../../store/paged/search-pages.ts'
import { isFields, linesOf, oldStepsOf } from '../../store/stored-shapes.ts'
import type { SearchHit, SearchLine } from '../api.ts'
import { type Excerpt, Needle } from './needle.ts'
import { Turns } from './turns.ts'

export const MOST_HITS = 1000
const PAGE_ROWS = 200
/** Tasks whose steps are searched between two reads of starts. */
const PAGE_TASKS = 200
const PROGRESS_MS = 250

type Found = Omit<SearchHit, 'id'>

/**
 * Searches a run for a text: first ids, which is fastest, then answers, errors and inputs, then logs and steps. Hits are
 * sent as they are found.
 */
export async function* search(run: PagedRun, text: string, signal: AbortSignal): AsyncGenerator<SearchLine> {
  const needle = new Needle(text)
  const { task: tasks, seq: attempts } = run.positions()
  const of = 3 * tasks + 2 * attempts
  const turns = new Turns()
  let hits = 0
  let told = performance.now()
  let searched = 0
  yield { kind: 'progress', searched, of }
  for (const part of parts(run, needle, tasks)) {
    if (typeof part === 'number') searched = Math.min(of, searched + part)
    else if (part !== undefined) {
      yield { kind: 'hit', hit: { ...part, id: idOf(run, part.task) } }
      if (++hits >= MOST_HITS) return void (yield { kind: 'end', hits, limited: true })
    }
    if (performance.now() - told > PROGRESS_MS) {
      told = performance.now()
      yield { kind: 'progress', searched, of }
    }
    await turns.next(signal)
  }
  yield { kind: 'end', hits, limited: false }
}

/** Yields hits, counts of searched items, and undefined where the search may pause. */
function* parts(run: PagedRun, needle: Needle, tasks: number): Generator<Found | number | undefined> {
  yield* inTasks(run, needle, 'id')
  yield* inAttempts(run, needle, 'endings')
  yield* inTasks(run, needle, 'input')
  yield* inAttempts(run, needle, 'logs')
  for (let after = 0; after < tasks; after += PAGE_TASKS) {
    for (const { start, task, attempt } of startsOfTasks(run, after, Math.min(tasks, after + PAGE_TASKS)))
      yield* inSteps(run, needle, start, task, attempt)
    yield Math.min(PAGE_TASKS, tasks - after)
  }
}

function* inTasks(run: PagedRun, needle: Needle, place: 'id' | 'input'): Generator<Found | number> {
  for (let after = 0; ; ) {
    const page = taskTexts(run, after, PAGE_ROWS, place === 'id')
    for (const { task, id, input } of page) {
      const found = place === 'id' ? needle.inText(id) : inStored(run, needle, input)
      if (found) yield { task, place, ...found }
    }
    yield page.length
    if (page.length < PAGE_ROWS) return
    after = page.at(-1)!.task
  }
}

function* inAttempts(run: PagedRun, needle: Needle, of: 'endings' | 'logs'): Generator<Found | number> {
  for (let after = 0; ; ) {
    const page = attemptTexts(run, after, PAGE_ROWS, of)
    for (const row of page) yield* of === 'endings' ? inEnding(run, needle, row) : inLogs(run, needle, row)
    yield page.length
    if (page.length < PAGE_ROWS) return
    after = page.at(-1)!.seq
  }
}

function* inEnding(run: PagedRun, needle: Needle, row: AttemptTexts): Generator<Found> {
  const { task, attempt } = row
  const error = inStored(run, needle, row.error)
  if (error) yield { task, place: 'error', attempt, ...error }
  const answer = inStored(run, needle, row.answer)
  if (answer) yield { task, place: 'answer', attempt, ...answer }
}

function* inLogs(run: PagedRun, needle: Needle, { task, attempt, logs, trajectory }: AttemptTexts): Generator<Found> {
  if (mayBeIn(run, needle, logs))
    for (const line of run.reading(() => linesOf(run.value(logs)))) {
      const found = needle.inText(line)
      if (!found) continue
      yield { task, place: 'log', attempt, ...found }
      break
    }
  // Steps of version 1.
  if (mayBeIn(run, needle, trajectory))
    for (const step of run.reading(() => oldStepsOf(run.value(trajectory)))) {
      const found = needle.inValue(step)
      if (found) yield { task, place: 'step', attempt, step: step.index, ...found }
    }
}

function* inSteps(
  run: PagedRun,
  needle: Needle,
  start: number,
  task: number,
  attempt: number,
): Generator<Found | undefined> {
  for (const one of stepBodies(run, start)) {
    if (one === undefined) {
      yield undefined
      continue
    }
    const { index, body } = one
    if (typeof body === 'string' && !needle.mayBeIn(body)) continue
    const value = typeof body === 'string' ? run.reading(() => JSON.parse(body) as unknown) : body.value
    const found = needle.inValue(isFields(value) ? shown(value) : value)
    if (found) yield { task, place: 'step', attempt, step: index, ...found }
  }
  yield undefined
}

/** A step without fields that repeat others or that people do not read. */
function shown({ request, tokens: _, sampling: __, ...rest }: Record<string, unknown>): Record<string, unknown> {
  return isFields(request) ? { added: request.added, tools: request.tools, ...rest } : rest
}

function inStored(run: PagedRun, needle: Needle, stored: unknown): Excerpt | undefined {
  return mayBeIn(run, needle, stored) ? needle.inValue(run.value(stored)) : undefined
}

function mayBeIn(run: PagedRun, needle: Needle, stored: unknown): boolean {
  if (stored === null) return false
  return typeof stored === 'string' ? needle.mayBeIn(stored) : !isLarge(run, stored)
}

function idOf(run: PagedRun, task: number): string {
  const [row] = taskTexts(run, task - 1, 1, true)
  return row?.id ?? ''
}
