import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { ManyworldsError, type RayOptions, Runners } from '../../dist/index.js'
import { double } from '../agents/nodes.ts'
import { freePort } from '../support/free-port.ts'
import { childrenOf, signal } from '../support/process-tree.ts'
import { commandOf, type RayCluster } from './cluster.ts'

/** Mistakes of users on a real cluster: each is one error that says what to do, and soon. */

/** Ray itself gives up after this time, and does not say why. */
const GIVES_UP_MS = 20_000

/** The error of a run with these options, and how long it took. */
async function refused(cluster: RayCluster, ray: RayOptions): Promise<{ error: ManyworldsError; ms: number }> {
  const began = Date.now()
  const { address, tokenFile } = cluster
  const run = Runners.runTask([double.task(1)], { engineName: 'ray', ray: { address, tokenFile, ...ray } })
  const error = await run.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!ManyworldsError.is(error)) throw new Error('it was not refused', { cause: error })
  return { error, ms: Date.now() - began }
}

export function testErrors(cluster: RayCluster): void {
  const folder = mkdtempSync(join(tmpdir(), 'mw-ray-errors-'))
  afterAll(async () => {
    await Runners.shutdown()
    rmSync(folder, { recursive: true, force: true })
  }, 60_000)

  const refusal = (ray: RayOptions) => refused(cluster, ray)

  const file = (name: string, text: string) => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }

  test('an address where nobody listens', { timeout: 120_000 }, async () => {
    const port = await freePort()
    for (const address of [`127.0.0.1:${port}`, `ray://127.0.0.1:${port}`]) {
      const { error, ms } = await refusal({ address })
      expect(error).toMatchObject({ code: 'RAY_FAILED', message: expect.stringContaining(`Ray cluster at ${address}`) })
      expect(error.message).toContain('nothing listens there (ECONNREFUSED)')
      expect(error.message).toMatch(/ray start --head.*inLocal: true/)
      expect(ms).toBeLessThan(GIVES_UP_MS)
    }
  })

  test('the port of the head with ray://, and the port of the Ray Client server without', {
    timeout: 120_000,
  }, async () => {
    const { address, clientAddress } = cluster
    const head = await refusal({ address: `ray://${address}` })
    expect(head.error.code).toBe('RAY_FAILED')
    expect(head.error.message).toContain('the head of the cluster answers there')
    expect(head.error.message).toContain(`give ray://127.0.0.1:10001, or, on a machine of the cluster, ${address}`)
    const client = await refusal({ address: clientAddress.replace('ray://', '') })
    expect(client.error.code).toBe('RAY_FAILED')
    expect(client.error.message).toContain(`a Ray Client server answers there: give ${clientAddress}`)
    for (const { ms } of [head, client]) expect(ms).toBeLessThan(GIVES_UP_MS)
  })

  test('a machine that does not exist', { timeout: 120_000 }, async () => {
    const { error } = await refusal({ address: 'no-such-machine.invalid:6379' })
    expect(error).toMatchObject({ code: 'RAY_FAILED', message: expect.stringContaining('host not found') })
  })

  test('a wrong token, and one that cannot be read', { timeout: 120_000 }, async () => {
    const wrong = await refusal({ tokenFile: file('wrong', 'another-token-that-is-long-enough-for-ray') })
    expect(wrong.error).toMatchObject({ code: 'RAY_FAILED', message: expect.stringContaining('ray.tokenFile') })
    expect(wrong.error.message).toContain('wants another token')
    expect(wrong.ms).toBeLessThan(GIVES_UP_MS)
    const { error } = await refusal({ tokenFile: join(folder, 'none') })
    expect(error.message).toContain(`there is no token in ${join(folder, 'none')}`)
  })

  test('more than any machine of the cluster has', { timeout: 120_000 }, async () => {
    const { error } = await refusal({ numCpus: 50, resources: { moon: 1 } })
    expect(error.code).toBe('RAY_IMPOSSIBLE')
    expect(error.message).toContain('each asks for 50 CPU, 1 moon')
    expect(error.message).toMatch(new RegExp(`${hostname()}: [^;]*\\b${cluster.cpus} CPU\\b`))
    expect(error.message).toContain('ray.autoscaling: true')
  })

  test('no Node where the workers are to run', { timeout: 120_000 }, async () => {
    const { error } = await refusal({ nodeBinary: '/no/such/node' })
    expect(error.code).toBe('RAY_FAILED')
    expect(error.message).toContain(`there is no Node on the Ray node ${hostname()} (looked for /no/such/node)`)
    expect(error.message).toContain("ray.nodeBinary 'wheel'")
  })

  test('a nodeBinary that ends at once: a few tries, then one error', { timeout: 180_000 }, async () => {
    const { error } = await refusal({ nodeBinary: '/bin/true' })
    expect(error).toMatchObject({
      code: 'WORKER_START_FAILED',
      message: expect.stringContaining(`(exit code 0 on ${hostname()}, 3 times in a row) and said nothing`),
    })
  })

  test('a node that the cluster does not have', { timeout: 120_000 }, async () => {
    const nodeId = '0'.repeat(56)
    const { error } = await refusal({ schedulingStrategy: { nodeId } })
    expect(error.code).toBe('RAY_IMPOSSIBLE')
    expect(error.message).toMatch(
      new RegExp(`has no node ${nodeId}.* It has: [0-9a-f]{56} \\(${hostname()}\\).*soft: true`),
    )
    // What only Ray can judge is said in its own words.
    const odd = await refusal({ schedulingStrategy: { nodeId: 'moon', soft: true } })
    expect(odd.error).toMatchObject({ code: 'RAY_FAILED', message: expect.stringContaining("Invalid node_id 'moon'") })
  })

  test('a token leaves nothing behind, neither a file nor a listener', { timeout: 120_000 }, async () => {
    const token = readFileSync(cluster.tokenFile, 'utf8')
    const temporary = join(folder, 'tmp')
    mkdirSync(temporary)
    const before = { listeners: process.listenerCount('exit'), TMPDIR: process.env.TMPDIR }
    process.env.TMPDIR = temporary
    try {
      const ray = { address: cluster.address, token }
      const responses = await Runners.runTask([double.task(4)], { engineName: 'ray', ray, keepWarmMs: 0 })
      expect([...responses.values()]).toMatchObject([{ answer: 8 }])
      await expect.poll(() => readdirSync(temporary), { timeout: 60_000 }).toEqual([])
      // Fewer, if workers of an earlier test were let go meanwhile.
      const listeners = () => process.listenerCount('exit')
      await expect.poll(listeners, { timeout: 30_000 }).toBeLessThanOrEqual(before.listeners)
    } finally {
      if (before.TMPDIR === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = before.TMPDIR
    }
  })

  test.each([
    [{ numCpu: 2 }, "unknown key 'ray.numCpu', did you mean 'numCpus'?"],
    [{ numCpus: -1 }, '`ray.numCpus` must be at least 0'],
    [{ version: 'newest' }, "`ray.version` must be a version such as '2.60.0'"],
    [{ schedulingStrategy: 'PACK' }, "`ray.schedulingStrategy` must be 'DEFAULT', 'SPREAD' or { nodeId, soft }"],
    [{ address: 'head' }, "'head' is not the address of a Ray cluster; give host:port"],
    [{ address: 'http://head:8265' }, "'http://head:8265' is not the address of a Ray cluster; give host:port"],
  ])('%j', async (ray, message) => {
    const { error, ms } = await refusal(ray as RayOptions)
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining(message) })
    expect(ms).toBeLessThan(GIVES_UP_MS)
  })

  test('after all that, the cluster is as it was', { timeout: 120_000 }, async () => {
    const { address, tokenFile } = cluster
    const responses = await Runners.runTask([double.task(21)], { engineName: 'ray', ray: { address, tokenFile } })
    expect([...responses.values()]).toMatchObject([{ answer: 42 }])
  })
}

/** Mistakes that Ray takes a minute to notice. */
export function testSlowErrors(cluster: RayCluster): void {
  afterAll(() => Runners.shutdown(), 60_000)

  test('packages that cannot be installed', { timeout: 240_000 }, async () => {
    const { error } = await refused(cluster, { runtimeEnv: { pip: ['manyworlds-no-such-package-1f3e'] } })
    expect(error.code).toBe('RAY_FAILED')
    expect(error.message).toContain('no worker can be started on the Ray cluster: Ray could not set up ray.runtimeEnv')
    expect(error.message).toContain('manyworlds-no-such-package-1f3e')
  })

  test('a head that is stopped, and what is no Ray at all', { timeout: 240_000 }, async () => {
    const head = childrenOf(cluster.raylets[0]!.pid).find((pid) => commandOf(pid).includes('gcs_server'))!
    signal(head, 'SIGSTOP')
    try {
      const { error } = await refused(cluster, {})
      expect(error.code).toBe('RAY_FAILED')
      expect(error.message).toContain('nothing is answered: the head of the cluster is stopped')
      expect(error.message).not.toMatch(/dashboard|TLS/)
    } finally {
      signal(head, 'SIGCONT')
    }
    const server = createServer((_, response) => response.end('a dashboard')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { error } = await refused(cluster, { address: `127.0.0.1:${(server.address() as AddressInfo).port}` })
    server.close()
    expect(error).toMatchObject({ code: 'RAY_FAILED', message: expect.stringContaining('not that of the dashboard') })
  })
}
