import type { BundleOptions } from '../bundle/index.ts'
import type { Placement } from '../engines/engine.ts'
import { makeEngine } from '../engines/make-engine.ts'
import { Dispatcher } from '../executor/dispatcher.ts'
import { keyVariables } from '../models/secrets.ts'
import type { WorkerSettings } from '../protocol/messages.ts'
import type { ResolvedConfig } from '../run-config-schema.ts'
import { say } from '../text/say.ts'
import { entryScript, type LocalPlacement, placementOf } from './environment.ts'
import { poolShape, workerKind } from './pool-fit.ts'

/** Workers are kept between calls: a pool per kind of worker, shared by the runs that want that kind. */
interface Pool {
  readonly key: string
  shape: string
  readonly dispatcher: Dispatcher
  warmTimer: NodeJS.Timeout | undefined
  users: number
}

const pools = new Map<string, Pool[]>()

/** A pool for this configuration; `release` must be called when the run is over. */
export function acquirePool(config: ResolvedConfig): { dispatcher: Dispatcher; release: () => void } {
  const placement = placementOf(config.env, config.showLogs ? 'show' : 'drop', keyVariables(config.models))
  const key = `${workerKind(config)}\0${placement.identity}`
  const shape = poolShape(config)
  const alike = pools.get(key) ?? []
  // Runs of the same shape share workers; an idle pool takes on any shape; else a pool of its own.
  const found =
    alike.find((pool) => pool.shape === shape && pool.dispatcher.usable) ??
    alike.find((pool) => pool.users === 0 && pool.dispatcher.usable && pool.dispatcher.reshapable)
  const pool: Pool = found ?? {
    key,
    shape,
    dispatcher: makeDispatcher(config, placement),
    warmTimer: undefined,
    users: 0,
  }
  if (!found) pools.set(key, [...alike, pool])
  else if (found.shape !== shape) {
    found.shape = shape
    found.dispatcher.reconfigure(config.workerNum, settingsOf(config, placement.withheld))
  }
  clearTimeout(pool.warmTimer)
  pool.users++
  return { dispatcher: pool.dispatcher, release: () => letGo(pool, config.keepWarmMs) }
}

export function makeDispatcher(
  config: ResolvedConfig,
  { withheld, identity: _, ...placement }: LocalPlacement,
): Dispatcher {
  const engine = makeEngine(config)
  const dispatcher = new Dispatcher({
    engine,
    placement,
    workerNum: config.workerNum,
    settings: settingsOf(config, withheld),
    entryScript: entryScript(),
    bundle: bundleOptions(config, placement),
    notice: say,
  })
  if (engine.publish) sayGoodbye(dispatcher)
  return dispatcher
}

/** Pools with workers on other machines, until they are shut down. */
const remote = new Set<Dispatcher>()
let watchesForTheEnd = false

/** When the program ends by itself, it says goodbye to other machines, so that they need not wait for a timeout. */
function sayGoodbye(dispatcher: Dispatcher): void {
  remote.add(dispatcher)
  void dispatcher.closing.then(() => remote.delete(dispatcher))
  if (watchesForTheEnd) return
  watchesForTheEnd = true
  process.on('beforeExit', () => {
    for (const one of remote) void one.shutdown()
  })
}

/** Ends all workers that were kept warm. */
export async function shutdownPools(): Promise<void> {
  const all = [...pools.values()].flat()
  pools.clear()
  for (const pool of all) void closePool(pool)
  // Including pools that are not kept warm.
  await Promise.all(closing)
}

function letGo(pool: Pool, keepWarmMs: number): void {
  if (--pool.users > 0) return
  if (keepWarmMs === 0 || !pool.dispatcher.usable) {
    forget(pool)
    return
  }
  pool.warmTimer = setTimeout(() => forget(pool), keepWarmMs)
  pool.warmTimer.unref()
}

function forget(pool: Pool): void {
  const left = pools.get(pool.key)?.filter((other) => other !== pool) ?? []
  if (left.length > 0) pools.set(pool.key, left)
  else pools.delete(pool.key)
  void closePool(pool)
}

/** Pools whose workers are being ended. */
const closing = new Set<Promise<void>>()

async function closePool(pool: Pool): Promise<void> {
  clearTimeout(pool.warmTimer)
  const closed = pool.dispatcher.shutdown()
  closing.add(closed)
  await closed.finally(() => closing.delete(closed))
}

/** A bundle is first loaded here, in an environment like that of its workers. */
function bundleOptions(
  { bundle: { files, external } }: ResolvedConfig,
  { remote }: Pick<Placement, 'remote'>,
): BundleOptions {
  const { PATH, HOME, LANG, TZ } = process.env
  return {
    ...(files === undefined ? {} : { files }),
    ...(external === undefined ? {} : { external }),
    env: { PATH, HOME, LANG, TZ, ...remote.env },
  }
}

function settingsOf(
  { concurrency, recycleAfterTasks, recycleAboveMb }: ResolvedConfig,
  withheldEnv: readonly string[],
): WorkerSettings {
  return { concurrency, recycleAfterTasks, recycleAboveMb, withheldEnv }
}
