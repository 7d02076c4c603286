import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import { onPath } from '../../python/environment.ts'

const OLDEST_JAVA = 17

export interface Java {
  readonly path: string
  readonly version: string
}

const INSTALL =
  'install a Java runtime of version 17 or 21 (Debian, Ubuntu: `apt install openjdk-17-jre-headless`; Fedora: `dnf install java-17-openjdk-headless`; macOS: `brew install openjdk@17`), or set JAVA_HOME to one'

/** The Java that Spark would use, or an error that says what to install. Checked before anything is downloaded. */
export function findJava(env: NodeJS.ProcessEnv = process.env): Java {
  const home = env.JAVA_HOME
  const path = home ? join(home, 'bin', 'java') : onPath('java')
  if (home && !existsSync(path!)) throw missing(`JAVA_HOME is ${home}, and there is no bin/java in it`)
  if (path === undefined) throw missing('no `java` is on the PATH, and JAVA_HOME is not set')
  const { stderr, error } = spawnSync(path, ['-version'], { encoding: 'utf8', timeout: 30_000 })
  const version = /version "([^"]+)"/.exec(stderr ?? '')?.[1]
  if (version === undefined)
    throw missing(`\`${path} -version\` prints no version: ${error?.message ?? stderr.split('\n')[0]}`)
  // Java 8 reports itself as 1.8.
  const [first, second] = version.split(/[._-]/).map(Number)
  const major = first === 1 ? second : first
  if (major === undefined || !(major >= OLDEST_JAVA)) throw missing(`${path} is Java ${version}`)
  return { path, version }
}

const missing = (what: string) =>
  new ManyworldsError('JAVA_MISSING', `Spark needs Java ${OLDEST_JAVA} or newer: ${what}; ${INSTALL}`)
