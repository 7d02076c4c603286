import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { FORGERY_NAMES } from './agents/hostile.ts'
import { printed, runScript } from './run-script.ts'

/** One task writes to its worker's own descriptors what no worker would say. The driver is a process with little memory. */

const folder = mkdtempSync(join(tmpdir(), 'mw-hostile-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const HEAP_MB = 100

it.each(FORGERY_NAMES)(
  '%s costs its worker, not the driver',
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
