import type { RunConfig } from '../../../run-config.ts'
import { say } from '../../../text/say.ts'
import type { ConnectSession } from '../connect/session.ts'
import { openServer, type Server } from '../server.ts'
import type { SparkPlace } from './source.ts'

/** Only the keys that say which Spark. */
export const placeOf = ({ spark, inLocal, workerNum }: SparkPlace): SparkPlace => ({
  ...(spark === undefined ? {} : { spark }),
  ...(inLocal === undefined ? {} : { inLocal }),
  ...(workerNum === undefined ? {} : { workerNum }),
})

export async function openSpark(place: SparkPlace): Promise<Server> {
  const { resolveConfig } = await import('../../../run-config-schema.ts')
  const config: RunConfig = { engineName: 'spark', ...placeOf(place) }
  const { spark = {}, inLocal, workerNum } = resolveConfig(config)
  return openServer(spark, inLocal, workerNum, say)
}

/**
 * Opens a session for one piece of work. Sessions are not reused: with slow agents the next work may come hours later, and a
 * Connect server drops sessions that were idle for an hour.
 */
export async function inSession<T>(
  server: Server,
  settings: Readonly<Record<string, string>>,
  work: (session: ConnectSession) => Promise<T>,
): Promise<T> {
  const session = await server.newSession(true)
  try {
    await session.setConfig(settings)
    return await work(session)
  } finally {
    await session.release()
    session.close()
  }
}
