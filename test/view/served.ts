import { request } from 'node:http'
import { onTestFinished } from 'vitest'
import type { LiveEvent, SearchLine, StepLine, TaskChunk } from '../../src/view/api.ts'
import { Place } from '../../src/view/read/place.ts'
import { serveViewer } from '../../src/view/serve.ts'

export const TOKEN = 'a-token-for-tests-only'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** A viewer of a folder or a file, for one test. */
export async function served(place: Place | string) {
  const options = { route: '#/', host: '127.0.0.1', port: 0, token: TOKEN }
  const shown = typeof place === 'string' ? Place.folder(place) : place
  const server = await serveViewer({ ...options, place: shown })
  onTestFinished(() => server.close())
  /** Not `fetch`, which sets Host and Origin by itself. */
  const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    new Promise<Answer>((resolve, reject) => {
      const asked = request({ host: '127.0.0.1', port: server.port, path, headers, method }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part
        })
        response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, text }))
        response.on('error', reject)
      })
      asked.on('error', reject).end()
    })
  const allowed = { authorization: `Bearer ${TOKEN}` }
  const answer = async (path: string): Promise<unknown> => JSON.parse((await ask(path, allowed)).text)
  return {
    server,
    ask,
    /** The answer of the API, which must not be an error. */
    async get<Value>(path: string): Promise<Value> {
      const value = (await answer(path)) as { error?: unknown } | null
      if (value?.error) throw new Error(JSON.stringify(value))
      return value as Value
    },
    /** The error of the API, with its status. */
    async error(path: string): Promise<{ status: number; code: string; message: string }> {
      const { status, text } = await ask(path, allowed)
      const lines = text.trimEnd().split('\n')
      return { status, ...(JSON.parse(lines.at(-1)!) as { error: { code: string; message: string } }).error }
    },
    async lines<Line = TaskChunk | SearchLine | StepLine>(path: string): Promise<Line[]> {
      const { text } = await ask(path, allowed)
      return text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Line)
    },
    events: (path: string) => new EventReader(`http://127.0.0.1:${server.port}${path}`),
  }
}

/** Reads server-sent events. */
export class EventReader {
  readonly events: LiveEvent[] = []
  lastId: string | undefined
  readonly #gone = new AbortController()
  readonly ended: Promise<void>

  constructor(url: string) {
    this.ended = this.#read(url).catch(() => {})
    onTestFinished(() => this.close())
  }

  async #read(url: string): Promise<void> {
    const response = await fetch(url, { headers: { authorization: `Bearer ${TOKEN}` }, signal: this.#gone.signal })
    let rest = ''
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
      const blocks = (rest + part).split('\n\n')
      rest = blocks.pop()!
      for (const block of blocks) {
        const data = /^data: (.*)$/m.exec(block)?.[1]
        if (data !== undefined) this.events.push(JSON.parse(data) as LiveEvent)
        this.lastId = /^id: (.*)$/m.exec(block)?.[1] ?? this.lastId
      }
    }
  }

  close(): void {
    this.#gone.abort()
  }
}

/** The rows of chunks by task number, the latest of each. */
export function rowsOf(chunks: readonly TaskChunk[]) {
  const rows = new Map<number, { id: string; state: number; attempts: number; cause: number | null }>()
  for (const { task, id, state, attempts, cause } of chunks)
    for (const [at, number] of task.entries())
      rows.set(number, { id: id[at]!, state: state[at]!, attempts: attempts[at]!, cause: cause[at]! })
  return rows
}
