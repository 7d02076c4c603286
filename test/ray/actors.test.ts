import { afterEach, expect, test, vi } from 'vitest'
import { Actors } from '../../src/engines/ray/actors.ts'

afterEach(() => void vi.useRealTimers())

/** Two actors, of which the first has a worker that works. */
function twoActors() {
  const said: { op: string; worker: number; generation: number }[] = []
  const notices: string[] = []
  const bridge = { control: (message: never) => said.push(message), data: () => {} }
  const events = { link: () => {}, notice: (line: string) => notices.push(line), failed: () => {} }
  const actors = new Actors({
    options: {},
    placement: { workers: 2, remote: { execArgv: [], env: {} } },
    events,
    bridge: () => bridge,
    codes: () => [],
    blobs: () => [],
  } as never)
  actors.open('runtime')
  const start = (worker: number) => {
    const { generation } = said.findLast((message) => message.op === 'start' && message.worker === worker)!
    actors.on({ event: 'started', worker, generation, pid: 1 } as never)
    return generation
  }
  for (const worker of [1, 2]) actors.on({ event: 'placed', worker, host: 'here' } as never)
  actors.linkOf(1, start(1))!.receive(Buffer.alloc(4))
  const starts = () => said.filter((message) => message.op === 'start' && message.worker === 2).length
  return { actors, said, notices, start, starts }
}

const KILLED = { event: 'ended', worker: 2, code: null, signal: 'SIGKILL', lastWords: null, stderr: null }

test('a worker that is killed before its first message is not restarted for ever', () => {
  vi.useFakeTimers()
  const { actors, said, notices, start, starts } = twoActors()
  for (let n = 0; n < 40 && starts() === n + 1; n++) {
    actors.on({ ...KILLED, generation: start(2) } as never)
    vi.advanceTimersByTime(1000)
  }
  expect(starts()).toBe(20)
  expect(notices).toEqual([
    expect.stringMatching(
      /^worker ray-1 cannot be started, the others go on: .*signal SIGKILL on here, 20 times in a row/,
    ),
  ])
  expect(said.at(-1)).toMatchObject({ op: 'kill', worker: 2 })
})

test('a worker whose actor is lost gets another, each time', () => {
  vi.useFakeTimers()
  const { actors, said, start } = twoActors()
  const spawned = () => said.filter(({ op }) => op === 'spawn').map(({ worker }) => worker)
  expect(spawned()).toEqual([1, 2])
  for (const [lost, next] of [
    [1, 3],
    [3, 4],
    [4, 5],
  ] as const) {
    actors.on({ event: 'lost', worker: lost, kind: 'ActorDiedError', text: 'its process was killed' } as never)
    vi.advanceTimersByTime(5000)
    expect(spawned().at(-1)).toBe(next)
    actors.on({ event: 'placed', worker: next, host: 'here' } as never)
    actors.linkOf(next, start(next))!.receive(Buffer.alloc(4))
  }
  // The other worker was left alone.
  expect(spawned()).toEqual([1, 2, 3, 4, 5])
})
