import { ManyworldsError } from '../../errors.ts'

/** Ray's own words, and what to do about them. Its reasons often are on stderr only, long before it gives up. */
const KNOWN: readonly [pattern: RegExp, text: (found: RegExpExecArray) => string][] = [
  [
    /InvalidAuthToken|Unauthenticated|authentication token|AuthenticationError|Token authentication/i,
    () => 'the cluster wants another token: give its own as ray.tokenFile or ray.token (or RAY_AUTH_TOKEN_PATH)',
  ],
  [
    /Version mismatch[\s\S]*?Ray: ([\d.]+)[\s\S]*?Python: ([\d.]+)[\s\S]*?Ray: ([\d.]+)[\s\S]*?Python: ([\d.]+)/,
    ([, ray, python, ourRay, ourPython]) =>
      `the cluster has Ray ${ray} on Python ${python}, this environment Ray ${ourRay} on Python ${ourPython}: give ray.version '${ray}'`,
  ],
  [
    /Could not find any running Ray instance|No running Ray|Failed to connect to GCS|Timed out|Unable to connect|ConnectionError|failed to connect|Deadline Exceeded/i,
    () =>
      'no Ray cluster answers there: is the address right, and is it reachable from here? Start one with `ray start --head`, or use inLocal: true',
  ],
  [
    /NODE_NOT_FOUND on (\S+): looked for (\S+), PATH=(.*)/,
    ([, host, looked]) =>
      `there is no Node on the Ray node ${host} (looked for ${looked}): install Node 22.18 or later there, give its path as ray.nodeBinary, or have it brought along with ray.nodeBinary 'wheel'`,
  ],
  [
    /OutOfMemory|OOM|was killed due to the node running low on memory/i,
    () => 'the actor ran out of memory: give workers more with ray.memory, or fewer tasks at once with concurrency',
  ],
]

/** What is known of it, in words that help; undefined if nothing is. */
export function cureFor(words: string): string | undefined {
  for (const [pattern, text] of KNOWN) {
    const found = pattern.exec(words)
    if (found) return text(found)
  }
  return undefined
}

/** The cluster's version, where that is what is wrong. */
export function versionWanted(words: string): string | undefined {
  return /Version mismatch[\s\S]*?Ray: ([\d.]+)/.exec(words)?.[1]
}

export function rayError(what: string, words: string): ManyworldsError {
  const cure = cureFor(words)
  const said = words.trim().split('\n').slice(-6).join('\n')
  return new ManyworldsError(
    'RAY_FAILED',
    `${what}: ${cure ?? said}`,
    cure === undefined ? {} : { cause: new Error(said) },
  )
}
