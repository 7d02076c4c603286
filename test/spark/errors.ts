import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { ManyworldsError, type RunConfig, Runners, type SparkOptions } from '../../dist/index.js'
import { double } from '../agents/nodes.ts'
import { makeAuthority } from '../nodes/certificates.ts'
import { freePort } from '../support/free-port.ts'
import type { SparkCluster } from './cluster.ts'

/** Mistakes of users on a real cluster: each is one error that says what to do. */

export function testErrors(cluster: SparkCluster): void {
  const folder = mkdtempSync(join(tmpdir(), 'mw-spark-errors-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const SLOW = { timeout: 180_000 }

  const run = (spark: SparkOptions, config: RunConfig = {}) =>
    Runners.runTask([double.task(21)], {
      ...{ engineName: 'spark', spark: { remote: cluster.remote, ...spark }, store: false, keepWarmMs: 0, ...config },
    })

  /** The error of a run with these options. */
  async function refusal(spark: SparkOptions, config?: RunConfig): Promise<ManyworldsError> {
    const error = await run(spark, config).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    if (!ManyworldsError.is(error)) throw new Error('it was not refused', { cause: error })
    expect(error.message).not.toMatch(/\tat |token=\w/)
    return error
  }

  test('nobody listens, a wrong token, and none', SLOW, async () => {
    const nobody = await refusal({ remote: `sc://127.0.0.1:${await freePort()}` })
    expect(nobody).toMatchObject({ code: 'SPARK_FAILED', message: expect.stringContaining('nothing listens there') })
    const wrong = await refusal({ remote: `${cluster.address}/;token=another` })
    expect(wrong).toMatchObject({ code: 'SPARK_FAILED', message: expect.stringContaining('does not accept our token') })
    const none = await refusal({ remote: cluster.address })
    expect(none).toMatchObject({ code: 'SPARK_FAILED', message: expect.stringContaining('it wants a token') })
  })

  test('no Node on the executors: which host', SLOW, async () => {
    const error = await refusal({ nodeBinary: '/no/such/node' })
    expect(error.code).toBe('SPARK_FAILED')
    expect(error.message).toContain(`there is no Node on the executor host ${hostname()} ('/no/such/node'`)
    expect(error.message).toContain('spark.nodeBinary')
  })

  test('a Node on the executors that is too old', SLOW, async () => {
    const old = join(folder, 'node')
    const pretend =
      'for (const [name, value] of [["version", "v20.1.0"], ["versions", { ...process.versions, node: "20.1.0" }]]) Object.defineProperty(process, name, { value })'
    writeFileSync(old, `#!/bin/sh\nexec '${process.execPath}' --import 'data:text/javascript,${pretend}' "$@"\n`)
    chmodSync(old, 0o755)
    const error = await refusal({ nodeBinary: old })
    expect(error.message).toContain(`the executor host ${hostname()} has Node v20.1.0`)
  })

  test.each([
    ['/bin/true', "'/bin/true' is not Node"],
    ['/bin/echo', '(it printed: const fs'],
  ])('%s in the place of Node, which ends at once: a few tries, then one error', SLOW, async (nodeBinary, words) => {
    const error = await refusal({ nodeBinary })
    expect(error.code).toBe('SPARK_FAILED')
    expect(error.message).toContain('ends at once with exit code 0')
    expect(error.message).toContain(words)
    expect(error.message).toContain('spark.nodeBinary')
  })

  test(
    'executors that cannot reach this process: which address they tried, and which option changes it',
    SLOW,
    async () => {
      // No machine has this address, and nothing is sent there.
      const error = await refusal({ advertiseHost: '255.255.255.255', port: await freePort() })
      expect(error.code).toBe('SPARK_UNREACHABLE')
      expect(error.message).toMatch(/255\.255\.255\.255:\d+/)
      expect(error.message).toContain('spark.advertiseHost')
      expect(error.message).toContain('spark.port')
    },
  )

  test('all cores are reserved', SLOW, async () => {
    const error = await refusal({ reserve: 6 })
    expect(error).toMatchObject({ code: 'SPARK_IMPOSSIBLE', message: expect.stringContaining('spark.reserve: 5') })
  })

  test('a port that is taken', SLOW, async () => {
    const taken: Server = createServer()
    await new Promise<void>((resolve) => taken.listen(0, resolve))
    const { port } = taken.address() as { port: number }
    try {
      const error = await refusal({ port })
      expect(error).toMatchObject({ code: 'ENGINE_FAILED', message: expect.stringContaining('something else listens') })
    } finally {
      taken.close()
    }
  })

  test.each([
    [{ advertizeHost: 'x' }, "unknown key 'spark.advertizeHost', did you mean 'advertiseHost'?"],
    [{ reserve: -1 }, '`spark.reserve` must be at least 0'],
    [{ port: 70_000 }, '`spark.port` must be at most 65535'],
    [{ remote: 'http://x:15002' }, 'this is not the address of a Spark Connect server: it does not begin with sc://'],
    [{ nodeBinary: 'node"; rm -rf /' }, 'spark.nodeBinary must be the name or path of a program'],
    [{ tls: { cert: '/no/such.pem', key: '/no/such.key' } }, 'spark.tls.cert cannot be read'],
  ])('%j', async (spark, message) => {
    const error = await refusal(spark as SparkOptions)
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining(message) })
  })

  test('no address at all', async () => {
    const run = Runners.runTask([double.task(1)], { engineName: 'spark', store: false })
    await expect(run).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('SPARK_REMOTE'),
    })
  })

  test('inLocal on a master that is not there', SLOW, async () => {
    const master = `spark://127.0.0.1:${await freePort()}`
    const error = await refusal({ master }, { inLocal: true })
    expect(error).toMatchObject({
      code: 'SPARK_FAILED',
      message: expect.stringContaining(`cannot connect to spark.master ${master}: nothing listens there`),
    })
  })

  test('inLocal without Java, and with an old one', async () => {
    const { JAVA_HOME, PATH } = process.env
    try {
      process.env.PATH = folder
      delete process.env.JAVA_HOME
      const missing = await refusal({}, { inLocal: true })
      expect(missing).toMatchObject({ code: 'JAVA_MISSING', message: expect.stringContaining('openjdk-17') })
      writeFileSync(join(folder, 'java'), '#!/bin/sh\necho \'openjdk version "11.0.2"\' >&2\n', { mode: 0o755 })
      const old = await refusal({ conf: { 'spark.app.name': 'another' } }, { inLocal: true })
      expect(old).toMatchObject({ code: 'JAVA_MISSING', message: expect.stringContaining('Java 11.0.2') })
    } finally {
      Object.assign(process.env, { PATH }, JAVA_HOME === undefined ? {} : { JAVA_HOME })
    }
  })

  test('the way back is encrypted when a certificate is given; the wrong authority is named', SLOW, async () => {
    const ours = await makeAuthority(folder, 'ours')
    const theirs = await makeAuthority(folder, 'theirs')
    const identity = await ours.sign('127.0.0.1')
    const way = { advertiseHost: '127.0.0.1' }
    const responses = await run({ ...way, tls: { ...identity, ca: ours.path } })
    expect([...responses.values()]).toMatchObject([{ answer: 42 }])
    const error = await refusal({ ...way, tls: { ...identity, ca: theirs.path } })
    expect(error).toMatchObject({ code: 'SPARK_UNREACHABLE', message: expect.stringContaining('certificate') })
  })

  test('after all that, the cluster is as it was', SLOW, async () => {
    expect([...(await run({})).values()]).toMatchObject([{ answer: 42 }])
  })
}
