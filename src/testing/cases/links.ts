import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import type { EngineEvents, RuntimeEngine, WorkerLink } from '../../engines/engine.ts'
import { makeEngine } from '../../engines/make-engine.ts'
import { seeded } from '../../random.ts'
import { placementOf } from '../../runners/environment.ts'
import type { Case } from '../case.ts'
import { checkLink, randomSteps, stallFrame } from '../link-property.ts'

const STEPS = 400
const LATE_FRAMES = 100
const STALL_MS = 10_000
const LATE_BYTES = 64 * 1024
/** Set this environment variable to repeat the same frames. */
const SEED_VARIABLE = 'MANYWORLDS_KIT_SEED'

/** The guarantees of a link. */
export const linkCases: Case[] = [
  {
    name: 'a link reports the drain after back-pressure, whatever is sent in between; frames for a dead worker never reach the next one',
    needsProcess: true,
    async run(kit) {
      const seed = Number(process.env[SEED_VARIABLE] ?? Math.floor(Math.random() * 1e9))
      const random = seeded(seed)
      const { next, stop } = await startLinks(makeEngine({ cls: kit.conf().cls }))
      try {
        const first = await next()
        await checkLink(first, randomSteps(random, STEPS))
        const successor = next()
        await endWhileSending(first)
        // The next worker would answer frames that were not meant for it.
        await checkLink(await successor, randomSteps(random, STEPS / 10))
      } catch (cause) {
        assert.fail(`${(cause as Error).message} (${SEED_VARIABLE}=${seed})`)
      } finally {
        await stop()
      }
    },
  },
]

/** Kills a worker that does not read, with many frames still in transit, and sends more. */
async function endWhileSending(link: WorkerLink): Promise<void> {
  link.send(stallFrame(STALL_MS))
  for (let sent = 0; sent < LATE_FRAMES; sent++) link.send(Buffer.alloc(LATE_BYTES, 1))
  await new Promise((resolve) => setTimeout(resolve, 100))
  link.kill()
  let over = false
  void link.closed.then(() => (over = true))
  while (!over) {
    link.send(Buffer.alloc(1024, 1))
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** The links of an engine with one worker, one after the other, to workers that only echo frames. */
export async function startLinks(
  engine: RuntimeEngine,
): Promise<{ next: () => Promise<WorkerLink>; stop: () => Promise<void> }> {
  const came: WorkerLink[] = []
  let waiting: PromiseWithResolvers<WorkerLink> | undefined
  let failure: Error | undefined
  const ending = new AbortController()
  const events: EngineEvents = {
    link: (link) => (waiting === undefined ? void came.push(link) : waiting.resolve(link)),
    retire: () => {},
    capacityGrew: () => {},
    failed: (error) => {
      failure = error
      waiting?.reject(error)
    },
    notice: () => {},
  }
  const next = async () => {
    if (failure) throw failure
    const link = came.shift()
    if (link) return link
    waiting = Promise.withResolvers()
    try {
      return await waiting.promise
    } finally {
      waiting = undefined
    }
  }
  const stop = async () => {
    ending.abort()
    await engine.stop()
  }
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const workerEntry = fileURLToPath(new URL(`../link-echo${extension}`, import.meta.url))
  const { withheld: _, identity: __, ...placement } = placementOf({}, 'drop')
  try {
    await engine.start({ ...placement, workerEntry, workers: 1, run: 'links' }, events, ending.signal)
    await engine.scale?.(1)
    return { next, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
