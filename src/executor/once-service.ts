import { isPacked } from '../protocol/read-packed.ts'
import type { Service } from './service.ts'

/** Remembers what tasks have done once: `ctx.once`. The task does it, so nobody asks this service for an answer. */
export const onceService: Service = {
  once: true,
  durable: true,
  atOnce: Number.POSITIVE_INFINITY,
  unlimited: false,
  check(body) {
    if (!isPacked(body)) throw new TypeError('a malformed question')
  },
  ask: () => Promise.reject(new TypeError('it has no answers of its own')),
}
