import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Pulse } from '../../src/view/live/pulse.ts'
import { OpenStores } from '../../src/view/read/open-stores.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('leaves nothing with the signal of a client that has waited for many beats', async () => {
  using stores = new OpenStores()
  using pulse = new Pulse(stores, undefined)
  const { signal } = new AbortController()
  for (let beat = 0; beat < 50; beat++) {
    const waited = pulse.wait(pulse.beats, signal)
    vi.advanceTimersByTime(2000)
    await waited
  }
  expect(getEventListeners(signal, 'abort')).toEqual([])
})
