import { once } from 'node:events'
import { createServer, get, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, it, onTestFinished, vi } from 'vitest'
import { write } from '../../src/view/http/answers.ts'
import { answerEvents } from '../../src/view/http/events.ts'
import type { Feed } from '../../src/view/live/feed.ts'
import { Pulse } from '../../src/view/live/pulse.ts'
import { OpenStores } from '../../src/view/read/open-stores.ts'

afterEach(() => void vi.useRealTimers())

const EVENT_CHARS = 256 * 1024
/** More than the system keeps for a connection. */
const EVENTS = 120

/** Many large events, each with its number. */
class LargeFeed implements Feed {
  made = 0

  async *next() {
    for (; this.made < EVENTS; await sleep(0)) {
      const problem = 'x'.repeat(EVENT_CHARS)
      yield {
        event: { kind: 'runs', list: { runs: [{ runId: `run-${this.made++}`, problem }], trainings: [] } },
      } as const
    }
  }
}

it('a client that does not read holds one event in memory and delays nobody; later it gets all of them', async () => {
  using stores = new OpenStores()
  using pulse = new Pulse(stores, undefined)
  const served: { feed: LargeFeed; response: ServerResponse }[] = []
  const server = createServer((_, response) => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const feed = new LargeFeed()
    served.push({ feed, response })
    void answerEvents(response, feed, pulse, gone.signal)
  }).listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const [slow] = await once(get({ port, host: '127.0.0.1', agent: false }), 'response')
  const [fast] = await once(get({ port, host: '127.0.0.1', agent: false }), 'response')
  const numbers = (text: string) => [...text.matchAll(/"run-(\d+)"/g)].map(([, number]) => Number(number))
  const read = async (client: AsyncIterable<Buffer>) => {
    let [seen, rest] = [[] as number[], '']
    for await (const part of client) {
      const blocks = (rest + part).split('\n\n')
      rest = blocks.pop()!
      seen = seen.concat(numbers(blocks.join()))
      if (seen.length === EVENTS) break
    }
    return seen
  }
  const all = Array.from({ length: EVENTS }, (_, number) => number)
  expect(await read(fast)).toEqual(all)
  const [{ feed, response }] = served as [(typeof served)[number]]
  expect(response.writableLength).toBeLessThan(2 * EVENT_CHARS)
  expect(feed.made).toBeLessThan(EVENTS)
  expect(response.destroyed).toBe(false)
  expect(await read(slow)).toEqual(all)
})

it('a client that reads nothing for a minute is disconnected', async () => {
  vi.useFakeTimers()
  const stuck = new Writable({ highWaterMark: 10, write: () => {} })
  const written = write(stuck as ServerResponse, 'a text that nobody reads')
  vi.advanceTimersByTime(59_000)
  expect(stuck.destroyed).toBe(false)
  vi.advanceTimersByTime(2000)
  expect(stuck.destroyed).toBe(true)
  expect(await written).toBe(false)
})
