import type { ServerResponse } from 'node:http'
import { Problem } from '../../network/http-problem.ts'
import { endedAttempts, taskNumber } from '../../store/paged/task-record.ts'
import { type LogLines, PARTS, type Start } from '../api.ts'
import { ListFeed } from '../live/list-feed.ts'
import { RunFeed } from '../live/run-feed.ts'
import { TrainingFeed } from '../live/training-feed.ts'
import { attemptChunks } from '../read/attempt-chunks.ts'
import { comparedRuns } from '../read/compare.ts'
import { cursorOf } from '../read/cursor.ts'
import { evaluationOf, runFigures } from '../read/figures.ts'
import { runDetails } from '../read/run-details.ts'
import { runList } from '../read/run-list.ts'
import { search } from '../read/search.ts'
import { stepLines, wholeStep } from '../read/step-lines.ts'
import { taskChunks } from '../read/task-chunks.ts'
import { noTask, taskDetails } from '../read/task-details.ts'
import { trainingDetails } from '../read/training.ts'
import { wholeValue } from '../read/whole-value.ts'
import type { OpenRun, Viewer } from '../viewer.ts'
import { answerJson, answerLines } from './answers.ts'
import { answerEvents } from './events.ts'
import { Limit } from './limit.ts'
import type { Query } from './query.ts'

export interface ApiRequest {
  readonly viewer: Viewer
  readonly start: Start
  readonly query: Query
  readonly response: ServerResponse
  /** The position that a reconnecting client of events has reached. */
  readonly lastEventId: string | undefined
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal
}

type Route = (request: ApiRequest) => Promise<void>

const searches = new Limit(4, 'searches')
const eventStreams = new Limit(64, 'event streams')
const MOST_NEEDLE_CHARS = 1000

/** Answers with JSON. */
const json =
  (read: (request: ApiRequest) => unknown): Route =>
  async (request) => {
    const value = await read(request)
    if (!request.signal.aborted) answerJson(request.response, 200, value)
  }

/** Answers with JSON about a run. */
const ofRun = (read: (open: OpenRun, request: ApiRequest) => unknown): Route =>
  json(async (request) => {
    using open = request.viewer.openRun(request.query.text('run'))
    return await read(open, request)
  })

/** Answers with lines about a run. */
const linesOfRun =
  (read: (open: OpenRun, request: ApiRequest) => AsyncIterable<unknown>): Route =>
  async (request) => {
    using open = request.viewer.openRun(request.query.text('run'))
    await answerLines(request.response, read(open, request))
  }

/** By path after `/api/`. */
export const routes: Readonly<Record<string, Route>> = {
  start: json(({ start }) => start),
  runs: json(({ viewer, signal }) => runList(viewer.place, signal)),
  figures: ofRun(({ run }, { signal }) => runFigures(run, signal)),
  evaluation: ofRun(({ run }, { signal }) => evaluationOf(run, signal)),
  run: ofRun(({ run }, { signal }) => runDetails(run, signal)),
  tasks: linesOfRun(({ run, causes }, { viewer, signal }) => {
    viewer.streaming(run)
    return taskChunks(run, causes, signal)
  }),
  attempts: linesOfRun(({ run }, { signal }) => attemptChunks(run, signal)),
  search: async (request) => {
    const text = request.query.text('text')
    if (text.length > MOST_NEEDLE_CHARS)
      throw new Problem(400, 'BAD_REQUEST', `\`text\` has more than ${MOST_NEEDLE_CHARS} characters`)
    using _place = searches.take()
    await linesOfRun(({ run }, { signal }) => search(run, text, signal))(request)
  },
  task: ofRun(({ run }, { query, signal }) => taskDetails(run, query.text('task'), signal)),
  value: ofRun(({ run }, { query }) => {
    const of = query.oneOf('of', PARTS)
    return wholeValue(run, { task: query.text('task'), of, attempt: query.integer('attempt', 0) })
  }),
  steps: linesOfRun(({ run }, { query, signal }) =>
    stepLines(run, stepsAsked(query, query.integer('from', 0)), signal),
  ),
  step: ofRun(({ run }, { query, signal }) => wholeStep(run, stepsAsked(query, query.integer('index')), signal)),
  logs: ofRun((open, { query }) => logsOf(open, query.text('task'), query.integer('attempt'))),
  training: json(({ viewer, query }) => trainingDetails(viewer.place.training(query.text('training')))),
  compare: json(async ({ viewer, query, signal }) => {
    using a = viewer.openRun(query.text('a'))
    using b = viewer.openRun(query.text('b'))
    return await comparedRuns(a.run, b.run, signal, query.optional('anyway') !== undefined)
  }),
  events: async (request) => {
    using _place = eventStreams.take()
    const { query } = request
    if (query.optional('run') !== undefined) await runEvents(request)
    else if (query.optional('training') !== undefined) await trainingEvents(request)
    else await listEvents(request)
  },
}

const stepsAsked = (query: Query, from: number) => ({ task: query.text('task'), start: query.integer('start'), from })

/** The attempt that counts, or else the latest, if several have the same number. */
function logsOf({ run }: OpenRun, id: string, attempt: number): LogLines {
  const task = taskNumber(run, id)
  if (task === undefined) throw noTask(run, id)
  const all = endedAttempts(run, task).filter(({ response }) => response.attempts === attempt)
  const chosen = all.find(({ role }) => role === 0) ?? all.at(-1)
  return { lines: chosen?.response.logs ?? [], left: 0 }
}

async function runEvents({ viewer, query, response, lastEventId, signal }: ApiRequest): Promise<void> {
  using open = viewer.openRun(query.text('run'))
  const { run, causes } = open
  const after = lastEventId ?? query.optional('after')
  const from = after === undefined ? viewer.streamedFrom(run) : cursorOf(after)
  if (from === undefined) throw new Problem(400, 'BAD_REQUEST', '`after` is not a cursor')
  using watched = viewer.pulses.take(run.path)
  await answerEvents(response, new RunFeed(run, causes, from), watched.pulse, signal)
}

async function trainingEvents({ viewer, query, response, signal }: ApiRequest): Promise<void> {
  const found = viewer.place.training(query.text('training'))
  using watched = viewer.pulses.take(found.path)
  await answerEvents(response, new TrainingFeed(found), watched.pulse, signal)
}

async function listEvents({ viewer, response, signal }: ApiRequest): Promise<void> {
  using watched = viewer.pulses.take(viewer.place.store())
  await answerEvents(response, new ListFeed(viewer.place), watched.pulse, signal)
}
