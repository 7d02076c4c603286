import { setTimeout as sleep } from 'node:timers/promises'
import { sparkSink } from 'manyworlds/spark'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { DataProgress } from '../../dist/engines/spark/data/data-progress.js'

afterEach(() => vi.restoreAllMocks())

const listen = () => {
  const said: string[] = []
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0)
  return said
}

describe('a long data step', () => {
  test('says what it is doing and how far, again and again, and that it is over', async () => {
    const said = listen()
    let rows = 0
    const progress = new DataProgress({ progress: true }, "reading table 't'", () => `${rows} rows`, 5)
    const waited = Promise.withResolvers<string>()
    const during = progress.during(waited.promise)
    while (said.length < 2) await sleep(1)
    rows = 7
    waited.resolve('the batch')
    expect(await during).toBe('the batch')
    progress.end('7 rows')
    expect(said[0]).toMatch(/^manyworlds: reading table 't': 0 rows after [\d.]+ m?s\n$/)
    expect(said.at(-1)).toMatch(/^manyworlds: done reading table 't': 7 rows in [\d.]+ m?s\n$/)
  })

  test('says nothing if it is quick, if nobody wants to know, or while nobody waits for it', async () => {
    const said = listen()
    for (const wishes of [{ progress: true }, { progress: false }, {}]) {
      const progress = new DataProgress(wishes, 'reading', () => '', wishes.progress ? 60_000 : 1)
      await progress.during(sleep(20))
      await sleep(20)
      progress.end('')
    }
    expect(said).toEqual([])
  })
})

test('`progress` that is no yes or no is refused', () => {
  expect(() => sparkSink({ parquet: 'x', inLocal: true, progress: 'yes' as never })).toThrow(
    expect.objectContaining({ code: 'CONFIG_INVALID', message: 'sparkSink: `progress` must be true or false' }),
  )
})
