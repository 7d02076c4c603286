import { sql } from '../../dist/engines/spark/connect/plans.js'
import type { ConnectSession } from '../../dist/engines/spark/connect/session.js'
import { openServer } from '../../dist/engines/spark/server.js'
import type { SparkCluster } from './cluster.ts'

/** As somebody who has nothing to do with us would use the cluster. */
export async function inSession<T>({ remote }: SparkCluster, use: (session: ConnectSession) => Promise<T>): Promise<T> {
  const server = await openServer({ remote }, false, 1, () => {})
  const session = await server.newSession()
  try {
    return await use(session)
  } finally {
    await session.release()
    session.close()
  }
}

/** A query, which needs a free core: 499,500. */
export const sumOfThousand = (cluster: SparkCluster): Promise<unknown> =>
  inSession(cluster, async (session) => {
    for await (const { sum } of session.rows(sql('SELECT sum(id) AS sum FROM range(1000)'))) return sum
    return undefined
  })
