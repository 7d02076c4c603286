import type { ApiError, LiveEvent, Start } from '../../../src/view/api.ts'
import { jsonLines } from './json-lines.ts'
import { type Source, SourceError, type Watched } from './source.ts'

type Query = Readonly<Record<string, string | number>>

const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 10_000
const RESTARTED = 'the viewer was restarted with another token; open the address that it printed'

/** Reads from the server that sent the page. */
export async function serverSource(): Promise<Source> {
  forgetToken()
  return {
    start: await ask<Start>('start'),
    report: undefined,
    runs: () => ask('runs'),
    figures: (run) => ask('figures', { run }),
    run: (run) => ask('run', { run }),
    evaluation: (run) => ask('evaluation', { run }),
    tasks: (run, signal) => lines('tasks', { run }, signal),
    attempts: (run, signal) => lines('attempts', { run }, signal),
    search: (run, text, signal) => lines('search', { run, text }, signal),
    task: (run, task) => ask('task', { run, task }),
    value: (at) => ask('value', { ...at }),
    steps: (at, signal) => lines('steps', { ...at }, signal),
    step: (at, index) => ask('step', { ...at, index }),
    logs: (run, task, attempt) => ask('logs', { run, task, attempt }),
    training: (training) => ask('training', { training }),
    compare: (a, b, anyway) => ask('compare', { a, b, ...(anyway && { anyway: 1 }) }),
    watch,
  }
}

/** The server has set a cookie, so the token or code is removed from the address bar, where it could be copied by mistake. */
function forgetToken(): void {
  const address = new URL(location.href)
  if (!address.searchParams.has('token') && !address.searchParams.has('code')) return
  for (const key of ['token', 'code']) address.searchParams.delete(key)
  history.replaceState(null, '', address)
}

const urlOf = (name: string, query: Query = {}) =>
  `api/${name}?${new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)]))}`

async function request(name: string, query: Query, signal?: AbortSignal): Promise<Response> {
  let response: Response
  try {
    response = await fetch(urlOf(name, query), signal ? { signal } : {})
  } catch (error) {
    if (signal?.aborted) throw error
    throw new SourceError('SERVER_GONE', 'the server does not answer. Is "manyworlds view" still running?')
  }
  if (response.ok) return response
  const { error } = (await response.json().catch(() => ({}))) as { error?: ApiError }
  throw new SourceError(
    error?.code ?? `HTTP_${response.status}`,
    error?.message ?? `the server answered HTTP ${response.status}`,
  )
}

const ask = async <Answer>(name: string, query: Query = {}): Promise<Answer> =>
  (await (await request(name, query)).json()) as Answer

async function* lines<Line>(name: string, query: Query, signal: AbortSignal): AsyncGenerator<Line> {
  const { body } = await request(name, query, signal)
  for await (const line of jsonLines(body!)) {
    const { error } = line as { error?: ApiError }
    if (error && Object.keys(line as object).length === 1) throw new SourceError(error.code, error.message)
    yield line as Line
  }
}

function watch(what: Watched, event: (event: LiveEvent) => void, lost: (isLost: boolean) => void): () => void {
  let events: EventSource
  let timer: ReturnType<typeof setTimeout>
  let delay = FIRST_RETRY_MS
  let last: Query = {}
  let isOver = false
  const open = () => {
    events = new EventSource(urlOf('events', what === 'runs' ? {} : { ...what, ...last }))
    events.onopen = () => {
      delay = FIRST_RETRY_MS
      lost(false)
    }
    events.onmessage = ({ data, lastEventId }) => {
      // The browser sends it only when it reconnects by itself.
      if (lastEventId !== '') last = { after: lastEventId }
      event(JSON.parse(data as string) as LiveEvent)
    }
    events.onerror = () => {
      lost(true)
      // The browser gives up after some errors, such as HTTP 502.
      events.close()
      timer = setTimeout(again, delay)
      delay = Math.min(2 * delay, LAST_RETRY_MS)
    }
  }
  // An EventSource does not report why it failed. A restarted server has another token, which a plain request reveals.
  const again = async () => {
    const answer = await fetch(urlOf('start')).catch(() => undefined)
    if (isOver) return
    if (answer?.status !== 401) open()
    else event({ kind: 'gone', error: { code: 'UNAUTHORIZED', message: RESTARTED } })
  }
  open()
  return () => {
    isOver = true
    clearTimeout(timer)
    events.close()
  }
}
