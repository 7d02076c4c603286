import type { Check } from '../../cli/commands/doctor/check.ts'
import { ManyworldsError } from '../../errors.ts'
import { requirePeers, SPARK_PEERS } from '../../optional-peers.ts'
import { count, counted } from '../../text/quantities.ts'
import { findCallbackAddress } from './callback-address.ts'
import { parseRemote, showRemote } from './connect/remote.ts'
import type { SparkOptions } from './options.ts'
import type { Room } from './room.ts'
import { openServer, reserveOf } from './server.ts'

/** The gRPC status UNAUTHENTICATED. */
const UNAUTHENTICATED = 16

/** The Connect server to ask, and the certificates for it. */
export type SparkCall = Required<Pick<SparkOptions, 'remote'>> & Pick<SparkOptions, 'remoteTls'>

/** Asks a Spark cluster for its version and capacity, as the engine would. `required`: the user typed its address. */
export async function checkSparkCluster(call: SparkCall, required: boolean): Promise<Check> {
  const address = parseRemote(call.remote)
  const path = showRemote(address)
  const what = { name: 'Spark', concerns: 'cluster', purpose: 'the Spark engine', required, path } as const
  try {
    requirePeers('asking a Spark cluster', SPARK_PEERS)
    const { findRoom } = await import('./room.ts')
    const server = await openServer(call, false, 1, () => {})
    await using session = await server.newSession()
    const [version, room, { hosts }] = await Promise.all([
      session.version(),
      findRoom(session),
      findCallbackAddress(address, undefined),
    ])
    const back = `its executors would call back at ${hosts.join(' or ')}`
    return { ...what, version, ...verdict(room), detail: `${roomInWords(room)}; ${back}` }
  } catch (error) {
    const { message, grpcCode } = error as Error & { grpcCode?: number }
    if (ManyworldsError.is(error) && error.code === 'PACKAGE_MISSING')
      return { ...what, status: 'broken', detail: 'was not asked', advice: message }
    const status = grpcCode === UNAUTHENTICATED ? 'refused' : 'unreachable'
    return { ...what, status, detail: inOptions(message.replace(`Spark at ${path}: `, '')) }
  }
}

/** How many workers a run with default options gets. */
const workersIn = ({ slots }: Room) => Math.max(0, slots - reserveOf({}))

/** The engine rejects a cluster that is too small. */
const verdict = (room: Room): Pick<Check, 'status' | 'advice'> =>
  room.grows || workersIn(room) > 0
    ? { status: 'ok' }
    : { status: 'low', advice: 'give it more cores, or set spark.reserve: 0 in the script' }

const roomInWords = (room: Room) =>
  room.grows
    ? `workers as they are needed, ${count(workersIn(room))} at most`
    : `room for ${counted(workersIn(room), 'worker')} (${counted(room.slots, 'slot')}, ${reserveOf({})} left to queries)`

/** Errors name keys of the configuration; on the command line, they are options. */
const inOptions = (message: string) =>
  message
    .replaceAll(/\bspark\.remoteTls\.(ca|cert|key)\b/g, '--tls-$1')
    .replace(
      'give the right one as ;token= in the address',
      'give the right one with --token-file, as ;token= in the address',
    )
