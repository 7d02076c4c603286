import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Wire } from '../../src/protocol/channel.ts'
import { KIND } from '../../src/protocol/raw-frames.ts'
import { isMarked, splitWire } from '../../src/protocol/split-wire.ts'

/** Two ends of one link. */
function pair(): [Wire & { drain(): void }, Wire & { drain(): void }] {
  const end = () => ({ frame: (_: Uint8Array) => {}, drained: () => {} })
  const ends = [end(), end()] as const
  const wire = (own: 0 | 1) => ({
    send: (frame: Uint8Array) => {
      ends[own === 0 ? 1 : 0].frame(frame)
      return true
    },
    onFrame: (listener: (frame: Uint8Array) => void) => void (ends[own].frame = listener),
    onDrain: (listener: () => void) => void (ends[own].drained = listener),
    drain: () => ends[own].drained(),
  })
  return [wire(0), wire(1)]
}

test('what the event loop and the side thread say over one link arrives at its own end, in order and unchanged', () => {
  // No frame of a channel begins with the mark.
  const frame = fc.uint8Array({ minLength: 1, maxLength: 50 }).filter((bytes) => bytes[0] !== KIND.side)
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('main', 'side'), frame)), (said) => {
      const [here, there] = pair().map(splitWire)
      const heard: [string, number[]][] = []
      there!.main.onFrame((bytes) => heard.push(['main', [...bytes]]))
      there!.side.onFrame((bytes) => heard.push(['side', [...bytes]]))
      for (const [voice, bytes] of said) here![voice].send(bytes)
      expect(heard).toEqual(said.map(([voice, bytes]) => [voice, [...bytes]]))
    }),
  )
})

test('an empty frame is not taken for one of the side thread', () => {
  expect(isMarked(new Uint8Array())).toBe(false)
})

test('both are told when the link can take more', () => {
  const [wire] = pair()
  const { main, side } = splitWire(wire)
  const told: string[] = []
  main.onDrain(() => void told.push('main'))
  side.onDrain(() => void told.push('side'))
  wire.drain()
  expect(told).toEqual(['main', 'side'])
})
