import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, isWorker } from 'manyworlds'

// As long as a large package takes to load.
if (isWorker) await sleep(2000)

export const slow = defineAgent({ name: 'slow', run: async (input: number) => input })
