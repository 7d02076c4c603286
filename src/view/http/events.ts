import type { ServerResponse } from 'node:http'
import type { LiveEvent } from '../api.ts'
import type { Feed, FeedEvent } from '../live/feed.ts'
import type { Pulse } from '../live/pulse.ts'
import { apiError, NOT_STORED, problemOf, SAFE_HEADERS, write } from './answers.ts'

const HEARTBEAT_MS = 15_000
const RECONNECT_MS = 1000

/**
 * Sends events until the client disconnects. The next event is read only after the client has taken the previous one, so
 * at most one is held in memory. A client that reads nothing for a long time is disconnected, and may reconnect at its
 * last position.
 */
export async function answerEvents(
  response: ServerResponse,
  feed: Feed,
  pulse: Pulse,
  signal: AbortSignal,
): Promise<void> {
  response.writeHead(200, {
    ...{ ...SAFE_HEADERS, ...NOT_STORED },
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
  })
  response.write(`retry: ${RECONNECT_MS}\n\n`)
  const heartbeat = setInterval(() => {
    if (!response.destroyed && !response.writableNeedDrain) response.write(':\n\n')
  }, HEARTBEAT_MS)
  try {
    while (!signal.aborted) {
      const beats = pulse.beats
      for await (const { event, id } of feed.next(signal)) if (!(await write(response, textOf(event, id)))) return
      await pulse.wait(beats, signal)
    }
  } catch (error) {
    if (!signal.aborted) await write(response, textOf({ kind: 'gone', error: apiError(problemOf(error)) }, undefined))
  } finally {
    clearInterval(heartbeat)
    response.end()
  }
}

const textOf = (event: LiveEvent, id: FeedEvent['id']): string =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(event)}\n\n`
