import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { DistributedExecutor, defineAgent, inline, isWorker, Runners } from 'manyworlds'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { runScript } from '../support/run-script.ts'
import { userProject } from './inline-project.ts'
import { priced } from './priced-agent.ts'

vi.mock('./mocked.ts', () => ({ priceOf: () => 7 }))

const conf = { engine: inline(), store: false } as const
let seen: unknown[] = []
/** An agent in a test file, with the closures of the test. */
const watched = defineAgent({
  name: 'watched',
  run: async (input: number, ctx) => {
    seen.push(input)
    console.log(`prints ${input}`)
    process.stdout.write(`writes ${input}\n`)
    ctx.step({ action: input })
    return { pid: process.pid, answer: await ctx.ask('double', input) }
  },
})
const parent = defineAgent({
  name: 'parent-inline',
  run: async (_: null) => [...(await Runners.runTask([watched.task(1), watched.task(2)])).values()].length,
})
const slow = defineAgent({
  name: 'slow-inline',
  run: (_: null, ctx) => sleep(60_000, undefined, { signal: ctx.signal }),
})
const where = new AsyncLocalStorage<string>()
const looks = defineAgent({ name: 'looks', run: () => where.getStore() ?? 'nowhere' })

afterAll(() => Runners.shutdown())

describe('the inline engine', () => {
  it('runs agents of the test file itself, in its process, with its closures', async () => {
    seen = []
    const services = { double: (n: number) => 2 * n }
    const response = await Runners.runTask(watched.task(4), { ...conf, services })
    expect(response).toMatchObject({ status: 'success', answer: { pid: process.pid, answer: 8 } })
    expect(seen).toEqual([4])
    expect(isWorker).toBe(false)
  })

  it('gives what a task prints to the task, and only that', async () => {
    const services = {
      double(n: number) {
        console.log('the service prints')
        process.stdout.write('the service writes\n')
        return n
      },
    }
    const response = await Runners.runTask(watched.task(4), { ...conf, services })
    expect(response.logs).toEqual(['prints 4', 'writes 4'])
  })

  it('leaves mocked modules mocked', async () => {
    expect((await Runners.runTask(priced.task(3), conf)).answer).toBe(21)
  })

  it('takes Runners inside a task for sub-tasks, and outside of it for a run', async () => {
    const services = { double: (n: number) => n }
    expect((await Runners.runTask(parent.task(null), { ...conf, services })).answer).toBe(2)
    const both = await Promise.all([1, 2].map(() => Runners.runTask(parent.task(null), { ...conf, services })))
    expect(both.map(({ answer }) => answer)).toEqual([2, 2])
  })

  it('times tasks out and cancels them', async () => {
    expect(await Runners.runTask(slow.task(null), { ...conf, timeoutMs: 50 })).toMatchObject({ status: 'timeout' })
    const abort = new AbortController()
    const running = Runners.runTask(slow.task(null), { ...conf, signal: abort.signal })
    setTimeout(() => abort.abort(), 50)
    expect((await running).status).toBe('cancelled')
  })

  it('runs no task in the asynchronous context of its caller', async () => {
    // A new engine, which is made inside of that context.
    await Runners.shutdown()
    const response = await where.run('caller', () => Runners.runTask(looks.task(undefined as never), conf))
    expect(response.answer).toBe('nowhere')
  })

  it('serves an executor', async () => {
    await using executor = new DistributedExecutor({ ...conf, services: { double: (n: number) => n } })
    executor.submitTask(watched.task(9, { id: 'nine' }))
    expect((await executor.collectResults()).get('nine')!.status).toBe('success')
  })

  it('is refused by syncRunTask, which would block the thread that it needs', () => {
    expect(() => Runners.syncRunTask([watched.task(1)], conf)).toThrow(/inline/)
  })

  it('gives its variables back, and leaves errors of the driver’s own code to Node', async () => {
    const { code, stderr, stdout } = await runScript(userProject())
    expect(stdout).toContain('during: set, after: undefined')
    expect(stderr).toContain('the driver’s own error')
    expect(code).toBe(1)
  })
})
