import { fileURLToPath } from 'node:url'
import { queryObjects } from 'node:v8'
import { expect, test } from 'vitest'
import { Connection } from '../../dist/engines/spark/connect/connection.js'
import { Slots } from '../../dist/engines/spark/slots.js'
import { makeSpark } from './engine.ts'

export function testNothingKept(): void {
  test('an engine that was stopped leaves nothing of it in memory', { timeout: 180_000 }, async () => {
    const before = { slots: countOf(Slots), connections: countOf(Connection) }
    for (let round = 0; round < 3; round++) await startAndStop()
    // What ends, ends a moment later.
    await expect.poll(() => countOf(Slots), { timeout: 30_000 }).toBeLessThanOrEqual(before.slots)
    await expect.poll(() => countOf(Connection), { timeout: 30_000 }).toBeLessThanOrEqual(before.connections)
  })
}

const countOf = (what: typeof Slots | typeof Connection) => queryObjects(what as never) as number

/** As the executor does it, without what it keeps itself. */
async function startAndStop(): Promise<void> {
  const engine = makeSpark()
  const workerEntry = fileURLToPath(new URL('../../dist/worker/boot.js', import.meta.url))
  await new Promise<void>((resolve, reject) => {
    const placement = {
      ...{ workers: 1, workerEntry, execArgv: [], cwd: process.cwd(), env: {}, output: 'drop' as const },
      remote: { execArgv: [], env: {} },
    }
    const events = {
      link: () => resolve(),
      failed: reject,
      retire: () => {},
      capacityGrew: () => {},
      notice: () => {},
    }
    engine.start(placement, events, new AbortController().signal).catch(reject)
  })
  await engine.stop()
}
