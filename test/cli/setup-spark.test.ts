import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { SPARK_VERSION } from '../../dist/engines/spark/environment.js'
import { manyworlds, newFolder, programs } from './manyworlds.ts'

const java = (version: string) => `echo 'openjdk version "${version}" 2025-04-15' >&2`
const SYSTEM = '/usr/bin:/bin'
/** A uv that makes environments whose Python is the script beside it. */
const UV = `if [ "$1" = venv ]; then for folder; do :; done; mkdir -p "$folder/bin"; cp "$0.python" "$folder/bin/python"; fi`

describe('manyworlds setup spark', () => {
  it('looks for Java before anything is made', async () => {
    const cache = newFolder()
    const setUp = (env: Record<string, string>) =>
      manyworlds(['setup', 'spark'], { env: { JAVA_HOME: '', XDG_CACHE_HOME: cache, ...env } })
    const refused = (why: string) => ({
      ...{ code: 1, stdout: '' },
      stderr: expect.stringMatching(
        new RegExp(`^manyworlds: Spark needs Java 17 or newer: ${why}; install .*\\[JAVA_MISSING\\]\n$`),
      ),
    })
    expect(await setUp({ PATH: newFolder() })).toEqual(refused('no `java` is on the PATH, and JAVA_HOME is not set'))
    const old = programs({ java: java('11.0.2') })
    expect(await setUp({ PATH: old })).toEqual(refused(`${old}/java is Java 11.0.2`))
    const empty = newFolder()
    const good = programs({ java: java('17.0.15') })
    expect(await setUp({ PATH: good, JAVA_HOME: empty })).toEqual(refused(`JAVA_HOME is ${empty}, .*`))
    expect(existsSync(join(cache, 'manyworlds'))).toBe(false)
  })

  it('makes it once, and again if it has to, and prints what it says of itself', async () => {
    const words = [
      'WARNING: Using incubator modules',
      String.raw`   /___/ .__/\_,_/_/ /_/\_\   version 4.1.4`,
      'Using Scala version 2.13.17, OpenJDK 64-Bit Server VM, 21.0.2',
      'Type --help for more information.',
    ]
    const python = words.map((line) => `echo '${line}' >&2`).join('\n')
    const bin = programs({ java: java('21.0.2'), uv: UV, 'uv.python': python })
    const cache = newFolder()
    const env = { PATH: `${bin}:${SYSTEM}`, JAVA_HOME: '', XDG_CACHE_HOME: cache }
    const setUp = (...more: string[]) => manyworlds(['setup', 'spark', '--version', '4.1.4', ...more], { env })
    const stdout = `Spark 4.1.4 on Java 21.0.2, in ${cache}/manyworlds/python/spark-4.1.4\n`
    const making = { code: 0, stdout, stderr: expect.stringContaining('setting up Python for Spark 4.1.4') }
    expect(await setUp()).toEqual(making)
    expect(await setUp()).toEqual({ code: 0, stdout, stderr: '' })
    expect(await setUp('--force')).toEqual(making)
  })

  it.each([
    ['echo "Java gateway process exited" >&2; exit 1', 'failed (1): Java gateway process exited'],
    ['echo hello', 'its version cannot be read from its output'],
  ])('says so where it is made and does not work: %s', async (python, problem) => {
    const bin = programs({ java: java('17.0.15'), uv: UV, 'uv.python': python })
    const env = { PATH: `${bin}:${SYSTEM}`, JAVA_HOME: '', XDG_CACHE_HOME: newFolder() }
    const { code, stdout, stderr } = await manyworlds(['setup', 'spark'], { env })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr.split('\n').at(-2)).toContain(`does not work: ${problem}. Make it again with --force`)
  })

  it('starts a JVM of the real one, also where another Spark is the one of the user', async () => {
    const { code, stdout } = await manyworlds(['setup', 'spark'], {
      env: { SPARK_HOME: newFolder(), PYTHONPATH: '/nowhere' },
    })
    expect(code).toBe(0)
    expect(stdout).toMatch(
      new RegExp(`^Spark ${SPARK_VERSION} on Java [\\d.]+, in /.*/spark-${SPARK_VERSION}-[0-9a-f]{8}\n$`),
    )
  }, 300_000)

  it.each([
    [['--version', 'new'], '--version must be a version such as 4.'],
    [['--version', '3.5.1'], '--version must be 4.0 or newer, which have Spark Connect, not 3.5.1'],
    [['--address', 'head:6379'], '--address is for "setup ray"'],
    [['--token-file', 'a'], '--token-file can only be used with --address'],
  ])('%j is a mistake', async (words, message) => {
    const { code, stderr } = await manyworlds(['setup', 'spark', ...words])
    expect(code).toBe(2)
    expect(stderr).toContain(message)
  })
})
