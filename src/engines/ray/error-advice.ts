import { ManyworldsError } from '../../errors.ts'
import type { RayOptions } from './options.ts'
import { whoListens } from './reachable.ts'
import { versionMismatch } from './versions.ts'

type Known = readonly [pattern: RegExp, text: (found: RegExpExecArray) => string]

/** Ray's connection errors and what to do about them. Ray often logs them on stderr long before it gives up. */
const CONNECTING: readonly Known[] = [
  [
    /timed out during startup|raylet failed to start/i,
    () => 'Ray did not start in time, twice: the machine is too busy, or short of memory (Ray needs about 1 GB)',
  ],
  [
    /RAY_AUTH_TOKEN_PATH is set but file cannot be opened or is empty: (\S{1,4096}?)\.?(\s|$)/,
    ([, path]) =>
      `there is no token in ${path}: ray.tokenFile (or RAY_AUTH_TOKEN_PATH) names a file that cannot be read, or is empty`,
  ],
  [
    /InvalidAuthToken|Unauthenticated|authentication token|AuthenticationError|Token authentication/i,
    () => 'the cluster wants another token: give its own as ray.tokenFile or ray.token (or RAY_AUTH_TOKEN_PATH)',
  ],
  [
    /No node info found matching|cannot find a local Raylet|Have you run 'ray start' on this node/,
    () =>
      'the head of the cluster answers, but this machine is not part of the cluster, as Ray requires for host:port: add it with `ray start --address=…`, or give the address of a Ray Client server, ray://host:10001',
  ],
  [
    /Starting Ray client server failed|Server startup failed/,
    () =>
      "the head could not start a Ray Client server for this driver in time, twice: its machine is too busy, or short of memory. Its log there is ray_client_server_….err in Ray's session folder",
  ],
  [
    /Could not find any running Ray instance|No running Ray|Failed to connect to GCS|Timed out|Unable to connect|ConnectionError|failed to connect|Deadline Exceeded/i,
    () =>
      'no Ray cluster answers there: is the address right, and is it reachable from here? Start one with `ray start --head`, or use inLocal: true',
  ],
]

/** Ray's errors about lost or failed actors. Ray's texts list many possible causes; only texts with one certain cause are matched. */
const LOST: readonly Known[] = [
  [
    /NODE_NOT_FOUND on (\S{1,300}): looked for (\S{1,300}), PATH=/,
    ([, host, looked]) =>
      `there is no Node on the Ray node ${host} (looked for ${looked}): install Node 22.18 or later there, give its path as ray.nodeBinary, or have it brought along with ray.nodeBinary 'wheel'`,
  ],
  [
    /^OutOfMemoryError|killed due to the node running low on memory/,
    () =>
      "Ray's memory monitor killed it because its machine ran low on memory: give workers more with ray.memory, or fewer tasks at once with concurrency",
  ],
  [
    /^RuntimeEnvSetupError/,
    ({ input }) => `Ray could not set up ray.runtimeEnv (or nodeBinary 'wheel') for it: ${reasonIn(input)}`,
  ],
  [/its node has died|^NodeDiedError|node was (terminated|dead)/i, () => 'its machine died'],
  [
    /Worker exit type: SYSTEM_ERROR|The actor died unexpectedly/,
    () => 'its process ended without a word: it crashed, or was killed by a signal',
  ],
]

/** Errors that a retry does not change. Ray itself has already retried runtime environments several times. */
const FINAL = /^(RuntimeEnvSetupError|ActorUnschedulableError|ValueError|TypeError)|NODE_NOT_FOUND/

/** Errors that Ray logs on stderr long before it throws. */
export const SAID_BEFORE_THROWN = /InvalidAuthToken|Unauthenticated|Failed to get cluster ID from GCS server: TimedOut/i

/** A local Ray, or the Ray Client server that the head starts for each driver, did not start within Ray's own time limit. */
export const startedTooSlowly = (words: string): boolean =>
  /timed out during startup|Starting Ray client server failed|Server startup failed/i.test(words)

const NO_ANSWER = /Failed to get cluster ID from GCS server: TimedOut/

export const wantsToken = (words: string): boolean => /InvalidAuthToken|Unauthenticated/i.test(words)

/** Whether the run's options or RAY_AUTH_MODE decide about the token. */
export const namesToken = ({ token, tokenFile }: RayOptions): boolean =>
  (token ?? tokenFile ?? process.env.RAY_AUTH_MODE) !== undefined

/** The error for a failed connection to Ray. */
export async function connectError(what: string, words: string, address: string): Promise<ManyworldsError> {
  // Ray only says that it got no answer: find out by other means what listens there.
  const known = NO_ANSWER.test(words) ? await whoListens(address) : (otherVersions(words) ?? lookUp(CONNECTING, words))
  const said = lastLines(words)
  return new ManyworldsError(
    'RAY_FAILED',
    `${what}: ${known ?? said}`,
    known === undefined ? {} : { cause: new Error(said) },
  )
}

function otherVersions(words: string): string | undefined {
  const found = versionMismatch(words)
  if (found === undefined) return undefined
  const { there, here } = found
  return `the cluster has Ray ${there.ray} on Python ${there.python}, this environment Ray ${here.ray} on Python ${here.python}: leave ray.version out, or give '${there.ray}'`
}

/** The error for a bridge that ended during a run. */
export function disconnectError(how: string, words: string): ManyworldsError {
  const why = how.startsWith('SIG')
    ? `the process that talks to Ray was ended by ${how}`
    : `the head of the cluster is gone, or could not be reached for too long (${how})`
  const cause = words === '' ? {} : { cause: new Error(lastLines(words)) }
  return new ManyworldsError('RAY_FAILED', `the connection to Ray has ended: ${why}. Resume the run to go on`, cause)
}

/** Explains why an actor was lost. `words` begins with the name of Ray's error. */
export const lossOf = (words: string): string => lookUp(LOST, words) ?? firstLine(words)

export const isFinal = (words: string): boolean => FINAL.test(words)
export const isMachineLost = (words: string): boolean => lossOf(words) === 'its machine died'

/** pip and others put the actual error at the end of long texts, or on lines of their own. */
function reasonIn(words: string): string {
  const errors = words.split('\n').filter((line) => /^\s*ERROR: /.test(line))
  return (errors.length > 0 ? errors.slice(-2).join(' ') : lastLines(words)).trim().slice(0, 1000)
}

function lookUp(known: readonly Known[], words: string): string | undefined {
  for (const [pattern, text] of known) {
    const found = pattern.exec(words)
    if (found) return text(found)
  }
  return undefined
}

const firstLine = (words: string): string => words.split('\n', 1)[0]!.slice(0, 1000)
const lastLines = (words: string): string => words.trim().split('\n').slice(-6).join('\n')
