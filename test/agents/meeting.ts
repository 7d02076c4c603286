import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from 'manyworlds'

const PATIENCE_MS = 15_000

/** Waits until so many tasks are in the same file; answers how many came. */
export const meeting = defineAgent({
  name: 'meeting',
  setup: () => sleep(200),
  run: async ({ file, count }: { file: string; count: number }) => {
    appendFileSync(file, '.')
    for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await sleep(20))
      if (readFileSync(file).length >= count) break
    return readFileSync(file).length
  },
})
