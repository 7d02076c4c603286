import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LoadBuckets, type Loaded } from '../../src/executor/load-buckets.ts'

const worker = (load: number, weight = 1): Loaded => ({ load, weight, bucket: -1, slot: -1 })

/** What one more task would cost there. */
const cost = ({ load, weight }: Loaded) => (load + 1) * weight

test('an idle slow worker comes after a fast one that has something to do, but not too much', () => {
  const buckets = new LoadBuckets()
  const [slow, fast] = [worker(0, 3), worker(1)]
  buckets.add(slow)
  buckets.add(fast)
  expect(buckets.least()).toBe(fast)
  buckets.remove(fast)
  buckets.add(Object.assign(fast, { load: 3 }))
  expect(buckets.least()).toBe(slow)
})

test('whatever comes and goes, the least loaded worker is found, and nobody is lost', () => {
  const change = fc.record({
    at: fc.nat(),
    load: fc.nat(40),
    weight: fc.integer({ min: 1, max: 16 }),
    remove: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
      const buckets = new LoadBuckets()
      const there: Loaded[] = []
      for (const { at, load, weight, remove } of changes) {
        if (remove && there.length > 0) buckets.remove(there.splice(at % there.length, 1)[0]!)
        else {
          const one = worker(load, weight)
          buckets.add(one)
          there.push(one)
        }
        expect(buckets.size).toBe(there.length)
        expect(new Set(buckets)).toEqual(new Set(there))
        const least = buckets.least()
        if (there.length === 0) expect(least).toBeUndefined()
        else expect(cost(least!)).toBe(Math.min(...there.map(cost)))
      }
    }),
  )
})
