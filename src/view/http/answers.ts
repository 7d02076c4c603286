import type { ServerResponse } from 'node:http'
import { ManyworldsError } from '../../errors.ts'
import { Problem } from '../../network/http-problem.ts'
import { NotLossless } from '../../trajectory/lossless-json.ts'
import type { ApiError } from '../api.ts'

const CSP = `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

/** For every answer. */
export const SAFE_HEADERS = {
  'content-security-policy': CSP,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const

export const NOT_STORED = { 'cache-control': 'no-store' } as const

/** A client that reads nothing for this time is disconnected. */
const STALLED_MS = 60_000

/** Writes a text; resolves when there is room for more. Returns false if the client is gone. */
export async function write(response: ServerResponse, text: string): Promise<boolean> {
  if (response.destroyed) return false
  if (response.write(text)) return true
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(stalled)
      response.off('drain', done).off('close', done)
      resolve()
    }
    const stalled = setTimeout(() => response.destroy(), STALLED_MS)
    response.once('drain', done).once('close', done)
  })
  return !response.destroyed
}

export function answerJson(response: ServerResponse, status: number, value: unknown): void {
  response
    .writeHead(status, { ...SAFE_HEADERS, ...NOT_STORED, 'content-type': 'application/json; charset=utf-8' })
    .end(`${JSON.stringify(value)}\n`)
}

/** Streams newline-delimited JSON. An error is the last line, or the answer itself if nothing was sent yet. */
export async function answerLines(response: ServerResponse, lines: AsyncIterable<unknown>): Promise<void> {
  const iterator = lines[Symbol.asyncIterator]()
  // The first line is awaited before the headers are sent: most errors come before it.
  let next = await iterator.next()
  response.writeHead(200, {
    ...{ ...SAFE_HEADERS, ...NOT_STORED },
    'content-type': 'application/x-ndjson; charset=utf-8',
  })
  try {
    for (; !next.done; next = await iterator.next())
      if (!(await write(response, `${JSON.stringify(next.value)}\n`))) break
  } catch (error) {
    await write(response, `${JSON.stringify({ error: apiError(problemOf(error)) })}\n`)
  } finally {
    await iterator.return?.()
    response.end()
  }
}

const NOT_FOUND: ReadonlySet<string> = new Set(['RUN_NOT_FOUND', 'TASK_NOT_FOUND', 'STORE_GONE'])

export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (ManyworldsError.is(error))
    return new Problem(NOT_FOUND.has(error.code) ? 404 : 500, error.code, error.message, { cause: error })
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof NotLossless) return new Problem(500, 'TOO_LARGE', `a value cannot be shown: ${message}`)
  return new Problem(500, 'INTERNAL', message)
}

export const apiError = ({ code, message }: Problem): ApiError => ({ code, message })
