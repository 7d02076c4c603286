import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineEnvironment, stepAgent } from 'manyworlds/agents'

/** Longer than what an episode or a task may take: the time of a setup must count for neither. */
const SLOW_MS = 4000
let ready = 0

const prepared = defineEnvironment({
  name: 'prepared',
  setup: async () => {
    await sleep(SLOW_MS)
    appendFileSync(process.env.PREPARED_LEDGER!, `${process.pid}\n`)
    ready++
  },
  reset: () => ({ state: {}, observation: ready }),
  step: () => ({ observation: ready, reward: 0, done: true }),
})

const spoilt = defineEnvironment({
  name: 'spoilt',
  setup: () => {
    throw new Error('there is no such thing here')
  },
  reset: () => ({ state: {}, observation: 0 }),
  step: () => ({ observation: 0, reward: 0, done: true }),
})

export const preparedAgent = stepAgent({ name: 'prepared', environment: prepared, act: () => 'go', timeoutMs: 2000 })
export const spoiltAgent = stepAgent({ name: 'spoilt', environment: spoilt, act: () => 'go' })
