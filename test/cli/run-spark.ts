import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Check } from '../../dist/cli/commands/doctor/check.js'
import { type RunArgs, runSpec } from '../../dist/cli/commands/run/spec.js'
import { parse } from '../../dist/cli/frame/parse.js'
import { resumeCommand } from '../../dist/cli/script/resume-command.js'
import { sparkOf } from '../../dist/engines/spark/cli.js'
import { SPARK_VERSION } from '../../dist/engines/spark/environment.js'
import { manyworlds } from './manyworlds.ts'
import { plainScript } from './node-script.ts'
import { project } from './project.ts'

const NOBODY = 'sc://127.0.0.1:1'
/** What may be set where the tests run. */
const ALONE = { SPARK_REMOTE: '', SPARK_CONNECT_AUTHENTICATE_TOKEN: '', MANYWORLDS_NODES: '' }

const START_MS = 300_000
/** The commands with a Spark of three cores that is there, at this address with a token in it. */
export function testRunSpark(address: string): void {
  const [remote, token] = address.split('/;token=') as [string, string]

  /** A project with a script, and with the token of the server in a file. */
  function withToken() {
    const { path, options } = project({ 'plain.ts': plainScript(8, 1), wrong: 'another-token' })
    writeFileSync(path('token'), `${token}\n`, { mode: 0o600 })
    return { options: { ...options, env: { ...options.env, ...ALONE } } }
  }

  describe('manyworlds run on a Spark cluster', () => {
    it('runs a script that knows nothing of Spark there, with the token in a file', async () => {
      const { options } = withToken()
      const words = ['run', 'plain.ts', '--spark-remote', remote, '--token-file', 'token', '--run-id', 'there']
      const { code, stdout, stderr } = await manyworlds(words, options)
      expect(code, stderr).toBe(0)
      // A slot is the parent of a worker; one is left to queries.
      expect(stdout).toMatch(/^parents \d+(,\d+)?\n$/)
      expect(stderr).toContain('[there] started: 8 tasks on spark, all workers x 2; ')
      expect(stderr).toContain('8 succeeded (100%)')
    }, 120_000)

    it('finds the cluster in the environment', async () => {
      const { options } = withToken()
      const env = { ...options.env, SPARK_REMOTE: address }
      const words = ['run', 'plain.ts', '--engine', 'spark', '--advertise-host', '127.0.0.1', '-w', '1', '-q']
      const { code, stderr } = await manyworlds(words, { ...options, env })
      // On a busy machine it may say that Spark takes its time.
      expect([code, stderr.replace(/^manyworlds: Spark has not started a worker yet: .*\n/m, '')]).toEqual([0, ''])
      // Asked for by nobody, it is not used.
      expect((await manyworlds(['run', 'plain.ts'], { ...options, env })).stderr).toContain('8 tasks on local')
    }, 120_000)

    it('says in one line that another token is not it, and never which', async () => {
      const { options } = withToken()
      const words = ['run', 'plain.ts', '--spark-remote', remote, '--token-file', 'wrong']
      const { code, stderr } = await manyworlds(words, options)
      expect(code).toBe(1)
      // esbuild, which may be at work when the program ends, has last words of its own.
      const own = stderr.split('\n').filter((line) => line.startsWith('manyworlds: '))
      expect(own.at(-1)).toMatch(/^manyworlds: Spark at .*: it does not accept our token; .*\[SPARK_FAILED\]$/)
      expect(stderr).not.toContain('another-token')
    })

    it(
      'starts a Spark here with --in-local, and takes it along',
      async () => {
        const { options } = withToken()
        const words = ['run', 'plain.ts', '--in-local', '--spark-master', 'local[2]', '-w', '1']
        const { code, stderr } = await manyworlds(words, options)
        expect(code, stderr).toBe(0)
        expect(stderr).toContain('8 tasks on spark, 1 worker x 2')
        expect(stderr).toContain(`starting Spark ${SPARK_VERSION} here, on local[2]`)
      },
      START_MS,
    )

    it.each([
      [['--engine', 'spark'], '--engine spark needs to know the cluster: --spark-remote sc://host:15002'],
      [['--spark-remote', 'a:1'], 'this is not the address of a Spark Connect server: it does not begin with sc://'],
      [['--spark-remote', NOBODY, '--engine', 'ray'], '--spark-remote can only be used with --engine spark'],
      [['--spark-remote', NOBODY, '--in-local'], '--spark-remote and --in-local exclude each other'],
      [['--spark-remote', NOBODY, '--ray-address', 'a:1'], '--spark-remote and --ray-address exclude each other'],
      [['--spark-remote', NOBODY, '--nodes', 'a'], '--spark-remote and --nodes exclude each other'],
      [['--spark-master', 'local[2]'], '--spark-master can only be used with --in-local'],
      [
        ['--spark-master', 'local[2]', '--in-local', '--engine', 'ray'],
        '--spark-master can only be used with --engine spark',
      ],
      [['--advertise-host', 'a', '--engine', 'local'], '--advertise-host can only be used with --engine spark'],
      [['--advertise-host', 'a', '--nodes', 'a'], '--advertise-host and --nodes exclude each other'],
      [['--spark-remote', NOBODY, '--token-file', 'none'], '--token-file: the token cannot be read: ENOENT'],
      [['--spark-remote', `${NOBODY}/;token=a`, '--token-file', 'wrong'], '--spark-remote has a token in it'],
      [['--spark-remote', NOBODY, '--tls-ca', 'none'], 'spark.remoteTls.ca cannot be read: ENOENT'],
    ])('%j is a mistake', async (words, message) => {
      const { options } = withToken()
      const { code, stdout, stderr } = await manyworlds(['run', 'plain.ts', '--no-store', '-q', ...words], options)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr.split('\n')[0]).toContain(message)
      expect(stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(2)
    })
  })

  describe('what is typed about Spark', () => {
    const typed = (...words: string[]) => {
      const parsed = parse(runSpec, ['a.ts', ...words])
      if (parsed.help) throw new Error('help')
      return parsed.args as unknown as RunArgs
    }
    const tokenFile = (text: string) => project({ token: text }).path('token')

    it('goes over what the script gives, key by key', () => {
      const script = {
        engineName: 'spark',
        spark: { remote: 'sc://a:1/;token=old;use_ssl=true', reserve: 2, remoteTls: { ca: 'x', serverName: 'name' } },
      } as const
      expect(sparkOf(typed(), script)).toEqual({ spark: script.spark })
      expect(
        sparkOf(typed('--spark-remote', 'sc://b:2', '--advertise-host', 'laptop', '--tls-ca', 'y'), script),
      ).toEqual({
        spark: {
          ...script.spark,
          remote: 'sc://b:2',
          advertiseHost: 'laptop',
          remoteTls: { ca: 'y', serverName: 'name' },
        },
      })
      const token = tokenFile('a;b=%c\n')
      const encoded = 'a%3Bb%3D%25c'
      expect(sparkOf(typed('--token-file', token), script).spark!.remote).toBe(
        `sc://a:1/;use_ssl=true;token=${encoded}`,
      )
      expect(sparkOf(typed('--token-file', token, '--spark-remote', 'sc://b'), script).spark!.remote).toBe(
        `sc://b/;token=${encoded}`,
      )
      expect(sparkOf(typed('--token-file', token), { engineName: 'ray' })).toEqual({})
    })

    it('is not for a Spark that is started here', () => {
      const words = ['--in-local', '--spark-master', 'local[2]', '--token-file', 'none', '--tls-ca', 'none']
      expect(sparkOf(typed(...words), { engineName: 'spark', inLocal: true })).toEqual({
        spark: { master: 'local[2]' },
      })
    })

    it('has no token in the command that goes on with a run', () => {
      const words = ['run', 'a.ts', '--spark-remote', 'sc://a:1/;token=secret;use_ssl=true', '--', ';token=own']
      const line = resumeCommand(words, 'half')
      expect(line).toContain(`--spark-remote 'sc://a:1/;token=...;use_ssl=true' --resume half -- ';token=own'`)
    })
  })

  describe('manyworlds doctor --spark-remote', () => {
    const look = async (words: readonly string[], env: Readonly<Record<string, string>> = {}) => {
      const { options } = withToken()
      const asked = await manyworlds(['doctor', '--json', ...words], { ...options, env: { ...options.env, ...env } })
      const { checks } = JSON.parse(asked.stdout) as { checks: Check[] }
      return { code: asked.code, cluster: checks.find(({ concerns }) => concerns === 'cluster') }
    }

    it('says what the cluster has to offer, and where executors would call', async () => {
      const { options } = withToken()
      const words = ['doctor', '--spark-remote', remote, '--token-file', 'token']
      const { code, stdout, stderr } = await manyworlds(words, options)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      const text = stdout.replaceAll(/\s+/g, ' ')
      const offer = 'room for 2 workers (3 slots, 1 left to queries); its executors would call back at 127.0.0.1'
      expect(text).toContain(`Spark cluster ✓ Spark ${SPARK_VERSION} ${remote}: ${offer}`)
      expect(text).toContain('The Spark cluster can be used.')
    })

    it('says why it cannot be used, and what to do', async () => {
      expect(await look(['--spark-remote', NOBODY])).toMatchObject({
        code: 1,
        cluster: { path: NOBODY, status: 'unreachable', detail: 'nothing listens there (ECONNREFUSED)' },
      })
      expect(await look(['--spark-remote', remote])).toMatchObject({
        code: 1,
        cluster: { status: 'refused', detail: expect.stringMatching(/^it wants a token, .* with --token-file/) },
      })
      expect(await look(['--spark-remote', remote, '--token-file', 'wrong'])).toMatchObject({
        code: 1,
        cluster: { status: 'refused', detail: expect.stringMatching(/^it does not accept our token/) },
      })
    })

    it('looks at the one that SPARK_REMOTE names too, which need not be there', async () => {
      const ok = { path: remote, status: 'ok', version: SPARK_VERSION }
      expect(await look([], { SPARK_REMOTE: address })).toMatchObject({ code: 0, cluster: ok })
      const gone = { path: NOBODY, status: 'unreachable', required: false }
      expect(await look([], { SPARK_REMOTE: NOBODY })).toMatchObject({ code: 0, cluster: gone })
      expect(await look([], { SPARK_REMOTE: 'local[*]' })).toEqual({ code: 0, cluster: undefined })
      // It is for whoever was typed.
      const typed = { status: 'refused', detail: expect.stringMatching(/wants a token/) }
      expect(await look(['--token-file', 'token'], { SPARK_REMOTE: remote })).toMatchObject({ code: 0, cluster: typed })
    })

    it.each([
      [['--spark-remote', 'spark:15002'], 'it does not begin with sc://'],
      [['--spark-remote', NOBODY, '--nodes', 'a:1'], '--spark-remote and --nodes exclude each other'],
    ])('%j is a mistake', async (words, message) => {
      const { code, stderr } = await manyworlds(['doctor', ...words])
      expect(code).toBe(2)
      expect(stderr).toContain(message)
    })
  })
}
