import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Check } from '../../dist/cli/commands/doctor/check.js'
import { RAY_VERSION, needsOf as rayNeeds } from '../../dist/engines/ray/environment.js'
import { SPARK_VERSION, needsOf as sparkNeeds } from '../../dist/engines/spark/environment.js'
import { environmentFolder } from '../../dist/python/environment.js'
import { noTerminals, openTerminal } from '../terminal/terminal.ts'
import { MAIN, manyworlds, newFolder, programs } from './manyworlds.ts'

const JAVA = 'java'

interface Diagnosis {
  readonly ok: boolean
  readonly code: number | null
  readonly checks: Record<string, Check>
}

async function diagnose(env: Record<string, string>, cwd = newFolder()): Promise<Diagnosis> {
  const clean = { XDG_CACHE_HOME: newFolder(), VIRTUAL_ENV: '', JAVA_HOME: '', SPARK_REMOTE: '', MANYWORLDS_STORE: '' }
  const { code, stdout, stderr } = await manyworlds(['doctor', '--json'], { cwd, env: { ...clean, ...env } })
  expect(stderr).toBe('')
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: Check[] }
  return { ok, code, checks: Object.fromEntries(checks.map((check) => [check.name, check])) }
}

describe('manyworlds doctor', () => {
  it('finds what is on this machine, and leaves nothing behind', async () => {
    const cwd = newFolder()
    const { code, stdout, stderr } = await manyworlds(['doctor'], { cwd, env: { MANYWORLDS_STORE: '' } })
    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(stdout).toContain(process.versions.node)
    expect(stdout).toContain(join(cwd, '.manyworlds', 'runs'))
    expect(stdout).toMatch(/disk +[\d.]+ GB free/)
    expect(stdout).toContain('The local engine works here.')
    expect(readdirSync(cwd)).toEqual([])

    const java = spawnSync(JAVA, ['-version'], { encoding: 'utf8' })
    const version = /version "([\d.]+)/.exec(java.stderr ?? '')?.[1]
    expect(stdout).toMatch(version === undefined ? /Java +not found/ : new RegExp(`Java +${version}`))
  })

  it('needs none of it for the local engine but Node, and says what to do about the rest', async () => {
    const { ok, code, checks } = await diagnose({ PATH: newFolder() })
    expect({ ok, code }).toEqual({ ok: true, code: 0 })
    expect(checks.Node).toMatchObject({ status: 'ok', version: process.versions.node, path: process.execPath })
    for (const name of ['npm', 'Python', 'uv', 'Ray', 'Java', 'Spark'])
      expect(checks[name]).toMatchObject({ status: 'missing', required: false, advice: expect.stringMatching(/\w/) })
    expect(checks.Ray!.advice).toContain('manyworlds setup ray')
    expect(checks.Spark!.advice).toContain('manyworlds setup spark')
    expect(checks.Java!.advice).toMatch(/no `java` is on the PATH, and JAVA_HOME is not set; install a Java runtime/)
  })

  it('reads the versions that programs print, and knows which are too old', async () => {
    const { checks } = await diagnose({
      PATH: programs({
        npm: 'echo 10.9.2',
        uv: 'echo "uv 0.9.1 (2026-01-01)"',
        java: `echo 'Picked up JAVA_TOOL_OPTIONS: -Dversion' >&2; echo 'java version "1.8.0_292"' >&2`,
        python3: 'echo Python 3.7.2',
      }),
    })
    expect(checks).toMatchObject({
      npm: { status: 'ok', version: '10.9.2' },
      uv: { status: 'ok', version: '0.9.1' },
      Java: { status: 'too old', version: '1.8.0_292', advice: expect.stringMatching(/needs Java 17 .*; install/) },
      Python: { status: 'too old', version: '3.7.2' },
    })
  })

  it('judges the Java that Spark would use: that of JAVA_HOME, if it is set', async () => {
    const home = newFolder()
    const PATH = programs({ java: `echo 'openjdk version "21.0.2" 2024-01-16' >&2` })
    expect((await diagnose({ PATH })).checks.Java).toMatchObject({ status: 'ok', version: '21.0.2', concerns: 'spark' })
    expect((await diagnose({ PATH, JAVA_HOME: home })).checks.Java).toMatchObject({
      status: 'missing',
      advice: expect.stringContaining(`JAVA_HOME is ${home}, and there is no bin/java in it`),
    })
    mkdirSync(join(home, 'bin'))
    writeFileSync(join(home, 'bin', 'java'), `#!/bin/sh\necho 'openjdk version "11.0.2"' >&2\n`, { mode: 0o755 })
    const path = join(home, 'bin', 'java')
    expect((await diagnose({ PATH, JAVA_HOME: home })).checks.Java).toMatchObject({ status: 'too old', path })
  })

  it.each([
    ['Ray', basename(environmentFolder(rayNeeds(RAY_VERSION))), RAY_VERSION],
    ['Spark', basename(environmentFolder(sparkNeeds(SPARK_VERSION))), SPARK_VERSION],
  ])("finds the environment of the %s engine, once it is made; not the user's own", async (name, made, version) => {
    const cache = newFolder()
    const own = programs({ ray: 'echo "ray, version 2.49.0"', 'spark-submit': 'echo "version 3.5.1"' })
    const env = { XDG_CACHE_HOME: cache, PATH: own, SPARK_HOME: own }
    const look = async () => (await diagnose(env)).checks[name]
    expect(await look()).toMatchObject({ status: 'missing', concerns: name.toLowerCase() })
    const folder = join(cache, 'manyworlds', 'python', made)
    mkdirSync(join(folder, 'bin'), { recursive: true })
    writeFileSync(join(folder, 'bin', 'python'), '')
    expect(await look()).toMatchObject({ status: 'missing' })
    writeFileSync(join(folder, '.complete'), '')
    expect(await look()).toMatchObject({ status: 'ok', version, path: folder })
  })

  it('says that a program is broken, and how', async () => {
    const { ok, checks } = await diagnose({
      PATH: programs({ java: 'echo "no JVM here" >&2; exit 3', uv: 'echo hello' }),
    })
    expect(ok).toBe(true)
    expect(checks.Java).toMatchObject({ status: 'broken', detail: 'failed (3): no JVM here' })
    expect(checks.uv).toMatchObject({ status: 'broken', detail: 'its version cannot be read from its output' })
  })

  // That nothing of the hanging programs stays is checked by `manyworlds` itself, after every run.
  it('does not hang with a program that hangs, whatever that has started', async () => {
    const { ok, checks } = await diagnose({
      PATH: `${programs({ java: 'sleep 1000\nexit 0', uv: 'sleep 1000 & sleep 1000' })}:/usr/bin:/bin`,
    })
    expect(ok).toBe(true)
    expect(checks.Java).toMatchObject({ status: 'broken', detail: 'no answer within 10 s' })
    expect(checks.uv).toMatchObject({ status: 'broken', detail: 'no answer within 10 s' })
  })

  it('fails if run files cannot be written here', async () => {
    const file = join(newFolder(), 'file')
    writeFileSync(file, '')
    const { ok, code, checks } = await diagnose({ MANYWORLDS_STORE: join(file, 'runs') })
    expect({ ok, code }).toEqual({ ok: false, code: 1 })
    expect(checks['run files']).toMatchObject({ status: 'broken', path: join(file, 'runs') })
    expect(checks['run files']!.advice).toContain('MANYWORLDS_STORE')
    expect((await diagnose({ MANYWORLDS_STORE: 'off' })).ok).toBe(true)
  })

  const old = ['/usr/bin/node', '/usr/local/bin/node'].find((node) => /^v20\./.test(version(node)))
  if (old === undefined) console.warn('skipped: this machine has no Node 20, so nothing checks what an old Node says')
  it.skipIf(old === undefined)('runs on a Node that is too old, to say so; nothing else does', async () => {
    const cwd = newFolder()
    writeFileSync(join(cwd, 'hello.ts'), "import { Runners } from 'manyworlds'\nawait Runners.runTask([])\n")
    const doctor = spawnSync(old!, [MAIN, 'doctor'], { encoding: 'utf8', cwd })
    expect(doctor.status).toBe(1)
    expect(doctor.stdout).toMatch(/✗ +Node +20[\d.]+, too old .*; install Node 22.18 or newer/)
    for (const words of [['runs'], ['run', 'hello.ts'], []]) {
      const { status, stdout, stderr } = spawnSync(old!, [MAIN, ...words], { encoding: 'utf8', cwd })
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
      expect(stderr).toMatch(/^manyworlds: Node 22.18 or newer is needed, this is v20[\d.]+ \[NODE_TOO_OLD\]\n$/)
    }
  })

  it.skipIf(noTerminals())('takes hanging programs with it at Ctrl-C', { timeout: 120_000 }, async () => {
    const pids = join(newFolder(), 'pids')
    const bin = programs({ java: `sleep 1000 & echo $! >> '${pids}'; echo $$ >> '${pids}'; wait` })
    const terminal = openTerminal(process.execPath, [MAIN, 'doctor'], { env: { PATH: `${bin}:/usr/bin:/bin` } })
    const started = () => {
      try {
        return readFileSync(pids, 'utf8').trim().split('\n').map(Number)
      } catch {
        return []
      }
    }
    // It is given ten seconds from its start, whenever that is.
    await expect.poll(started, { timeout: 40_000, interval: 20 }).toHaveLength(2)
    terminal.ctrlC()
    expect(await terminal.exit).toBe(130)
    const alive = () => started().filter((pid) => spawnSync('kill', ['-0', String(pid)]).status === 0)
    await expect.poll(alive, { timeout: 30_000 }).toEqual([])
  })
})

function version(node: string): string {
  return spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout ?? ''
}
