import { Code } from '@connectrpc/connect'
import { parseRemote, showRemote } from '../../engines/spark/connect/remote.ts'
import type { SparkOptions } from '../../engines/spark/options.ts'
import { findRoom, type Room } from '../../engines/spark/room.ts'
import { openServer, reserveOf } from '../../engines/spark/server.ts'
import { findWayBack } from '../../engines/spark/way-back.ts'
import { count, counted } from '../../text/quantities.ts'
import type { Check } from './check.ts'

/** How the cluster is called: a Connect server, and what it takes to be let in. */
export type SparkCall = Required<Pick<SparkOptions, 'remote'>> & Pick<SparkOptions, 'remoteTls'>

/** Asks a Spark cluster what it has to offer, as the engine would. `required`: it was named, and not only found. */
export async function checkSparkCluster(call: SparkCall, required: boolean): Promise<Check> {
  const address = parseRemote(call.remote)
  const path = showRemote(address)
  const what = { name: 'Spark', concerns: 'cluster', purpose: 'the Spark engine', required, path } as const
  try {
    const server = await openServer(call, false, 1, () => {})
    await using session = await server.newSession()
    const [version, room, { hosts }] = await Promise.all([
      session.version(),
      findRoom(session),
      findWayBack(address, undefined),
    ])
    const back = `its executors would call back at ${hosts.join(' or ')}`
    return { ...what, version, ...verdict(room), detail: `${roomInWords(room)}; ${back}` }
  } catch (error) {
    const { message, grpcCode } = error as Error & { grpcCode?: number }
    const status = grpcCode === Code.Unauthenticated ? 'refused' : 'unreachable'
    return { ...what, status, detail: inOptions(message.replace(`Spark at ${path}: `, '')) }
  }
}

/** Those that a run takes, if nothing else is said. */
const workersIn = ({ slots }: Room) => Math.max(0, slots - reserveOf({}))

/** One that is too small would be refused by the engine. */
const verdict = (room: Room): Pick<Check, 'status' | 'advice'> =>
  room.grows || workersIn(room) > 0
    ? { status: 'ok' }
    : { status: 'low', advice: 'give it more cores, or say spark.reserve: 0 in the script' }

const roomInWords = (room: Room) =>
  room.grows
    ? `workers as they are needed, ${count(workersIn(room))} at most`
    : `room for ${counted(workersIn(room), 'worker')} (${counted(room.slots, 'slot')}, ${reserveOf({})} left to queries)`

/** Errors name keys of the configuration; here they are options. */
const inOptions = (message: string) =>
  message
    .replaceAll(/\bspark\.remoteTls\.(ca|cert|key)\b/g, '--tls-$1')
    .replace(
      'give the right one as ;token= in the address',
      'give the right one with --token-file, as ;token= in the address',
    )
