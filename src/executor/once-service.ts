import { isPacked } from '../protocol/read-packed.ts'
import type { Service } from './service.ts'

/** Stores results of `ctx.once`. The task does the work itself, so `ask` is never called. */
export const onceService: Service = {
  once: true,
  durable: true,
  atOnce: Number.POSITIVE_INFINITY,
  unlimited: false,
  check(body) {
    if (!isPacked(body)) throw new TypeError('a malformed request')
  },
  ask: () => Promise.reject(new TypeError('this service only stores results')),
}
