import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Turns, type Waiting } from '../../src/executor/turns.ts'

interface Request extends Waiting<string> {
  readonly n: number
}

test('those who wait take turns, and each keeps its own order', () => {
  const served: string[] = []
  const turns = new Turns<string, Request>(1, ({ by, n }) => void served.push(`${by}${n}`))
  const requests = [...['a', 'a', 'a', 'b', 'b', 'c'].entries()].map(([n, by]) => ({ by, n }))
  for (const request of requests) turns.add(request)
  for (const name of ['a0', 'a1', 'b3', 'c5', 'a2', 'b4']) {
    expect(served.at(-1)).toBe(name)
    turns.remove(requests.find(({ by, n }) => `${by}${n}` === name)!)
    turns.next()
  }
  expect([served.length, turns.size]).toEqual([6, 0])
})

test('a hundred thousand requests that end while they are served do not fill the stack', () => {
  let served = 0
  const turns: Turns<string, Request> = new Turns(1, (request) => {
    served++
    turns.remove(request)
    turns.next()
  })
  const first = { by: 'a', n: 0 }
  const blocked = new Turns<string, Request>(0, () => {})
  blocked.add(first)
  expect(blocked.size).toBe(1)
  for (let n = 0; n < 100_000; n++) turns.add({ by: 'a', n })
  expect([served, turns.size]).toEqual([100_000, 0])
})

test('whatever comes and ends: never more at once than allowed, nothing waits beside free room, nothing is served twice', () => {
  const event = fc.record({ by: fc.constantFrom('a', 'b', 'c'), end: fc.boolean(), which: fc.nat() })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(event, { maxLength: 100 }), (atOnce, events) => {
      const order: Request[] = []
      const turns = new Turns<string, Request>(atOnce, (request) => void order.push(request))
      const open: Request[] = []
      for (const [n, { by, end, which }] of events.entries()) {
        if (end && open.length > 0) {
          turns.remove(open.splice(which % open.length, 1)[0]!)
          turns.next()
        } else {
          const request = { by, n }
          open.push(request)
          turns.add(request)
        }
        const active = order.filter((request) => open.includes(request)).length
        expect(turns.size).toBe(open.length)
        expect(active).toBe(Math.min(atOnce, open.length))
      }
      expect(new Set(order).size).toBe(order.length)
      for (const by of ['a', 'b', 'c']) {
        const own = order.filter((request) => request.by === by).map(({ n }) => n)
        expect(own).toEqual(own.toSorted((one, other) => one - other))
      }
    }),
  )
})
