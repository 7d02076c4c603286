import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { EpochReport } from '../../dist/train/index.js'
import { PYTHON_SET_UP_MS } from '../python/locked.ts'
import { startDriver } from '../train/start-driver.ts'
import { talkingTiny, whyNoLora } from './lora/sampler.ts'

const SCRIPT = fileURLToPath(new URL('lora/train-babbler.ts', import.meta.url))
const missing = await whyNoLora()
/** Of random weights: with the usual ones a model says everything with the same probability, and learns slowly. */
const SPREAD = 0.15

type Line = Partial<EpochReport> & { readonly ms?: number; readonly begun?: true }

describe.skipIf(missing)('a language model that is trained', () => {
  let env: NodeJS.ProcessEnv

  beforeAll(async () => {
    const { base } = await talkingTiny()
    const { config, tokenizer } = base as { config: object; tokenizer: string }
    env = {
      ...process.env,
      TINY_TOKENIZER: tokenizer,
      TINY_CONFIG: JSON.stringify({ ...config, initializer_range: SPREAD }),
      MANYWORLDS_STORE: undefined,
    }
  }, PYTHON_SET_UP_MS)

  const newStore = () => {
    const path = mkdtempSync(join(tmpdir(), 'mw-babbler-'))
    onTestFinished(() => rmSync(path, { recursive: true, force: true }))
    return path
  }

  const start = (store: string, epochs: number, settings: object = {}) =>
    startDriver<Line>([SCRIPT, store, 'babbler', String(epochs), JSON.stringify(settings)], env)

  async function finish(store: string, epochs: number, settings: object = {}): Promise<Line[]> {
    const driver = start(store, epochs, settings)
    expect(await driver.exited, driver.stderr()).toBe(0)
    return driver.lines().filter(({ epoch }) => epoch !== undefined)
  }

  it('becomes better at its task, with figures of validation, test and tasks of another kind', async () => {
    const reports = await finish(newStore(), 3)
    const [first, last] = [reports[0]!, reports.at(-1)!]
    console.log(
      `reward by epoch: ${reports.map(({ reward }) => reward!.toFixed(3)).join(' ')}; ${last.ms!.toFixed(0)} ms`,
    )
    expect(last.reward!).toBeGreaterThan(first.reward! + 0.3)
    expect(last.test!.reward!.value).toBeGreaterThan(last.test!.before.reward!.value + 0.3)
    expect(last.offTask!.before.reward).not.toBeNull()
    // The learner finds the probabilities that the sampler had.
    for (const { metrics, alarms } of reports) {
      expect(metrics!.ratio).toBeCloseTo(1, 3)
      expect(metrics).toMatchObject({ driftedTurns: 0, refusedCalls: 0 })
      expect(alarms!.filter((alarm) => alarm.includes('other probabilities'))).toEqual([])
    }
  })

  it('comes to the same losses after kill -9 of the driver, the learner and the sampler', async () => {
    const calm = (await finish(newStore(), 2)).at(-1)!
    const store = newStore()
    for (let kill = 0; kill < Number(process.env.KILLS ?? 2); kill++) {
      const driver = start(store, 2)
      await expect.poll(driver.lines, { timeout: 120_000 }).not.toEqual([])
      await Promise.race([driver.exited, sleep(Math.random() * 0.7 * calm.ms!)])
      // One of its Python processes, or all of it.
      const victims = pythonsOf(driver.child.pid!)
      const victim = kill % 2 === 0 ? driver.child.pid! : victims[kill % Math.max(1, victims.length)]
      if (victim !== undefined) signal(victim)
      await Promise.race([driver.exited, sleep(victim === driver.child.pid ? 60_000 : 4000)])
      driver.child.kill('SIGKILL')
      await driver.exited
    }
    const last = (await finish(store, 2)).at(-1)!
    expect(last.digest).toBe(calm.digest)
    await expect.poll(() => pythonsOf(process.pid), { timeout: 30_000 }).toEqual([])
  })

  it('learns while it collects', async () => {
    const reports = await finish(newStore(), 3, { overlap: { maxStaleness: 1 }, evaluate: false })
    expect(reports.at(-1)!.reward!).toBeGreaterThan(reports[0]!.reward! + 0.2)
    expect(reports.at(-1)!.staleness!.max).toBeLessThanOrEqual(1)
  })
})

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended.
  }
}

/** Processes below this one that are sidecars. */
function pythonsOf(ancestor: number): number[] {
  const parents = new Map<number, { parent: number; command: string }>()
  for (const name of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      const [, parent] = /\) \S (\d+) /.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))!
      parents.set(Number(name), { parent: Number(parent), command: readFileSync(`/proc/${name}/cmdline`, 'utf8') })
    } catch {
      // It has just ended.
    }
  const isBelow = (pid: number): boolean => {
    const found = parents.get(pid)
    return found !== undefined && (found.parent === ancestor || isBelow(found.parent))
  }
  return [...parents]
    .filter(([pid, { command }]) => command.includes('lora_sidecar') && isBelow(pid))
    .map(([pid]) => pid)
}
