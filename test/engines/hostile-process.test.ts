import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { Runners } from '../../dist/index.js'
import { seeded } from '../../src/random.ts'
import { AGAIN_NAMES, FORGERY_NAMES, good, wantsAgain } from '../agents/hostile.ts'
import { printed, runScript } from '../support/run-script.ts'
import { IN_STORM, SEED } from '../support/storm.ts'

/** One task writes to its worker's own descriptors what no worker would say. The driver is a process with little memory. */

const folder = mkdtempSync(join(tmpdir(), 'mw-hostile-'))
afterAll(async () => {
  await Runners.shutdown()
  rmSync(folder, { recursive: true, force: true })
})

const HEAP_MB = 100

/** Some seconds of writing each: for the storm. */
const FLOODS: readonly string[] = ['64 MB of digits for the watchdog', '600 MB of last words']

const drawn = seeded(SEED)
const FORGERIES = FORGERY_NAMES.filter((name) => IN_STORM || (drawn() < 0.5 && !FLOODS.includes(name)))

it.each(FORGERIES)(
  `%s costs its worker, not the driver (seed ${SEED})`,
  async (name) => {
    // Half of them with a run file, which has to be told the same.
    const env = FORGERY_NAMES.indexOf(name) % 2 === 0 ? {} : { STORE: folder }
    const flags = [`--max-old-space-size=${HEAP_MB}`]
    const ended = await runScript('hostile-driver.ts', { args: [name], flags, env })
    expect(ended.code, ended.stderr.slice(-2000)).toBe(0)
    const [{ responses, peakMb }] = printed(ended) as [{ responses: [string, string, unknown][]; peakMb: number }]
    const [[id, status], ...rest] = responses as [[string, string], ...[string, string, unknown][]]
    expect([id, ['crashed', 'timeout'].includes(status)], status).toEqual(['forger', true])
    expect(rest).toEqual(Array.from({ length: 40 }, (_, n) => [`good${n}`, 'success', 2 * n]))
    expect(peakMb).toBeLessThan(350)
  },
  60_000,
)

/** In a crowd, alone and announced, and once more. */
const MOST_STARTS = 8

it.each(AGAIN_NAMES)(
  'a task whose worker %s is not run again without end, and others do not starve',
  async (how) => {
    const file = join(folder, `starts-${AGAIN_NAMES.indexOf(how)}`)
    const tasks = [
      ...Array.from({ length: 3 }, (_, n) => wantsAgain.task({ how, file }, { id: `again${n}` })),
      wantsAgain.task({ how, file }, { id: 'never', rerun: 'never' }),
      ...Array.from({ length: 10 }, (_, n) => good.task(n, { id: `good${n}` })),
    ]
    const responses = await Runners.runTask(tasks, {
      ...{ workerNum: 2, concurrency: 2, store: false, maxAttempts: 1, deadlineMs: 50_000 },
    })
    const starts = readFileSync(file, 'utf8').split('\n')
    for (const [id, { status, attempts }] of responses) {
      if (id.startsWith('good')) expect([id, status]).toEqual([id, 'success'])
      else expect([id, status !== 'cancelled', attempts], status).toEqual([id, true, 1])
      const most = id === 'never' ? 1 : MOST_STARTS
      expect(starts.filter((line) => line === id).length, id).toBeLessThanOrEqual(most)
    }
  },
  60_000,
)
