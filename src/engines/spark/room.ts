import { sql } from './connect/plans.ts'
import type { ConnectSession } from './connect/session.ts'

const KEYS = {
  dynamic: 'spark.dynamicAllocation.enabled',
  mostExecutors: 'spark.dynamicAllocation.maxExecutors',
  executors: 'spark.executor.instances',
  executorCores: 'spark.executor.cores',
  taskCores: 'spark.task.cpus',
  coresMax: 'spark.cores.max',
  parallelism: 'spark.default.parallelism',
  leafParallelism: 'spark.sql.leafNodeDefaultParallelism',
  speculation: 'spark.speculation',
} as const

/** The capacity of a Spark application. */
export interface Room {
  /** Spark tasks that can run at once, as far as known. */
  readonly slots: number
  /** Dynamic allocation: it gets more executors on demand. */
  readonly grows: boolean
  /** Speculation: it starts slow tasks a second time. */
  readonly speculates: boolean
}

/** Asks how many slots there could be. */
export async function findRoom(session: ConnectSession): Promise<Room> {
  const found = await session.getConfig(Object.values(KEYS))
  const number = (key: keyof typeof KEYS) => {
    const value = Number(found.get(KEYS[key]))
    return Number.isFinite(value) && value > 0 ? value : undefined
  }
  const taskCores = number('taskCores') ?? 1
  const executorCores = number('executorCores') ?? 1
  const speculates = found.get(KEYS.speculation) === 'true'
  const slots = (cores: number) => Math.floor(cores / taskCores)
  if (found.get(KEYS.dynamic) === 'true') {
    const most = number('mostExecutors')
    return { slots: most === undefined ? 100_000 : slots(most * executorCores), grows: true, speculates }
  }
  // Spark splits a range into as many partitions as it has cores, unless configured otherwise.
  if (number('parallelism') === undefined && number('leafParallelism') === undefined)
    return { slots: slots(await coresOf(session)), grows: false, speculates }
  const executors = number('executors')
  const cores = executors === undefined ? number('coresMax') : executors * executorCores
  return { slots: slots(cores ?? number('parallelism') ?? number('leafParallelism')!), grows: false, speculates }
}

/** From the plan of a query that is not run, so it works also when no core is free. */
async function coresOf(session: ConnectSession): Promise<number> {
  const plan = await session.explain(sql('SELECT * FROM range(1000000)'))
  return Number(/splits=(?:Some\()?(\d+)/.exec(plan)?.[1] ?? 1)
}
