import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LearnerCalls, type LearnerChannel } from '../../dist/train/learner-calls.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const HOUR = 3_600_000

function calls(kind: LearnerChannel['kind']) {
  const killed = vi.fn(async () => {})
  const made = new LearnerCalls({ kind, post: () => {}, keepAlive: () => {}, kill: killed }, {})
  return { made, killed }
}

test('a call of a learner in a thread may take hours', async () => {
  const { made, killed } = calls('thread')
  const update = made.update({ rows: [] })
  await vi.advanceTimersByTimeAsync(10 * HOUR)
  expect(killed).not.toHaveBeenCalled()
  made.receive({ type: 'result', id: 1, value: { loss: 1 } })
  expect(await update).toEqual({ loss: 1 })
})

test('so may a call in a process that sends heartbeats; a silent process is killed', async () => {
  const { made, killed } = calls('process')
  const update = made.update({ rows: [] })
  for (let beats = 0; beats < 600; beats++) {
    await vi.advanceTimersByTimeAsync(60_000)
    made.receive({ type: 'heartbeat' })
  }
  expect(killed).not.toHaveBeenCalled()
  const told = expect(update).rejects.toThrow('was killed, because it sent no heartbeat for 120 s')
  await vi.advanceTimersByTimeAsync(130_000)
  await told
  expect(killed).toHaveBeenCalledOnce()
})
