import { hash } from 'node:crypto'
import { makeEngine } from '../engines/make-engine.ts'
import { Dispatcher } from '../executor/dispatcher.ts'
import type { ResolvedConfig } from '../run-config-schema.ts'
import { entryScript, placementOf } from './environment.ts'

/** Workers are kept between calls: a pool per kind of worker, shared by the runs that want that kind. */
interface Pool {
  readonly key: string
  readonly dispatcher: Dispatcher
  warmTimer: NodeJS.Timeout | undefined
  users: number
}

const pools = new Map<string, Pool>()
const classKeys = new WeakMap<object, number>()
let nextClassKey = 1

/** A pool for this configuration; `release` must be called when the run is over. */
export function acquirePool(config: ResolvedConfig): { dispatcher: Dispatcher; release: () => void } {
  const placement = placementOf(config.env, config.showLogs ? 'show' : 'drop')
  const key = keyOf(config, placement)
  let pool = pools.get(key)
  if (pool === undefined) {
    pool = { key, dispatcher: makeDispatcher(config, placement), warmTimer: undefined, users: 0 }
    pools.set(key, pool)
  }
  const held = pool
  clearTimeout(held.warmTimer)
  held.users++
  return { dispatcher: held.dispatcher, release: () => letGo(held, config.warmMs) }
}

export function makeDispatcher(
  config: ResolvedConfig,
  { withheld, ...placement }: ReturnType<typeof placementOf>,
): Dispatcher {
  const engine = makeEngine(config)
  const workerNum = Math.min(config.workerNum, engine.maxWorkers ?? config.workerNum)
  if (workerNum < config.workerNum)
    notice(
      `${config.workerNum} workers were asked for and ${workerNum} can be placed by the ${engine.name} engine; each runs up to ${config.concurrency} tasks at once`,
    )
  const { concurrency, recycleAfterTasks, recycleAboveMb } = config
  const settings = { concurrency, recycleAfterTasks, recycleAboveMb, withheldEnv: withheld }
  return new Dispatcher({ engine, placement, workerNum, settings, entryScript: entryScript(), notice })
}

/** Ends all workers that were kept warm. */
export async function shutdownPools(): Promise<void> {
  const all = [...pools.values()]
  pools.clear()
  await Promise.all(all.map((pool) => closePool(pool)))
}

function letGo(pool: Pool, warmMs: number): void {
  if (--pool.users > 0) return
  if (warmMs === 0 || !pool.dispatcher.usable) {
    pools.delete(pool.key)
    void closePool(pool)
    return
  }
  pool.warmTimer = setTimeout(() => {
    pools.delete(pool.key)
    void closePool(pool)
  }, warmMs)
  pool.warmTimer.unref()
}

async function closePool(pool: Pool): Promise<void> {
  clearTimeout(pool.warmTimer)
  await pool.dispatcher.shutdown()
}

/** Options, environment, folder and command line: what a worker that is already running cannot change. */
function keyOf(config: ResolvedConfig, placement: ReturnType<typeof placementOf>): string {
  const { engineName, workerNum, concurrency, recycleAfterTasks, recycleAboveMb, inLocal, cls } = config
  return hash(
    'sha256',
    JSON.stringify([
      engineName,
      workerNum,
      concurrency,
      recycleAfterTasks,
      recycleAboveMb,
      inLocal,
      cls && classKey(cls),
      placement,
    ]),
  )
}

function classKey(cls: object): number {
  let key = classKeys.get(cls)
  if (key === undefined) classKeys.set(cls, (key = nextClassKey++))
  return key
}

function notice(line: string): void {
  process.stderr.write(`manyworlds: ${line}\n`)
}
