import { ManyworldsError } from '../../errors.ts'
import type { RayOptions } from './options.ts'
import { mismatched } from './versions.ts'

/** Ray's own words, and what to do about them. Its reasons often are on stderr only, long before it gives up. */
const KNOWN: readonly [pattern: RegExp, text: (found: RegExpExecArray) => string][] = [
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
    /Failed to get cluster ID from GCS server: TimedOut/,
    () =>
      'something listens there, but does not answer as Ray does: give the port of `ray start` (6379 where it was not told another), not that of the dashboard (8265); a cluster with TLS needs ray.tls',
  ],
  [
    /Could not find any running Ray instance|No running Ray|Failed to connect to GCS|Timed out|Unable to connect|ConnectionError|failed to connect|Deadline Exceeded/i,
    () =>
      'no Ray cluster answers there: is the address right, and is it reachable from here? Start one with `ray start --head`, or use inLocal: true',
  ],
  [
    /NODE_NOT_FOUND on (\S{1,300}): looked for (\S{1,300}), PATH=/,
    ([, host, looked]) =>
      `there is no Node on the Ray node ${host} (looked for ${looked}): install Node 22.18 or later there, give its path as ray.nodeBinary, or have it brought along with ray.nodeBinary 'wheel'`,
  ],
  [
    /OutOfMemory|OOM|was killed due to the node running low on memory/i,
    () => 'the actor ran out of memory: give workers more with ray.memory, or fewer tasks at once with concurrency',
  ],
]

/** Reasons that Ray has on stderr long before it throws. */
export const SAID_BEFORE_THROWN = /InvalidAuthToken|Unauthenticated|Failed to get cluster ID from GCS server: TimedOut/i

/** What is known of it, in words that help; undefined if nothing is. */
export function cureFor(words: string): string | undefined {
  const [theirs, ours] = mismatched(words)
  if (theirs && ours)
    return `the cluster has Ray ${theirs.ray} on Python ${theirs.python}, this environment Ray ${ours.ray} on Python ${ours.python}: leave ray.version out, or give '${theirs.ray}'`
  for (const [pattern, text] of KNOWN) {
    const found = pattern.exec(words)
    if (found) return text(found)
  }
  return undefined
}

export const wantsToken = (words: string): boolean => /InvalidAuthToken|Unauthenticated/i.test(words)

/** Whether it was said which token to use, or that there is none. */
export const namesToken = ({ token, tokenFile }: RayOptions): boolean =>
  (token ?? tokenFile ?? process.env.RAY_AUTH_MODE) !== undefined

export function rayError(what: string, words: string): ManyworldsError {
  const cure = cureFor(words)
  const said = words.trim().split('\n').slice(-6).join('\n')
  return new ManyworldsError(
    'RAY_FAILED',
    `${what}: ${cure ?? said}`,
    cure === undefined ? {} : { cause: new Error(said) },
  )
}
