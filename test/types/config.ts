// Compiled by `npm run check`, never run: a configuration with a mistake in it.
import {
  DistributedExecutor,
  defineAgent,
  EngineName,
  FatalError,
  inline,
  LocalRuntime,
  nodes,
  RetryableError,
  type RunConfig,
  Runners,
  ray,
  SharedBlob,
  spark,
  type TaskError,
} from 'manyworlds'
import { same } from './equal.ts'

const explain = defineAgent({ name: 'explain', run: async (input: string) => input })
const tasks = [explain.task('x')]

same<RunConfig['engineName'], 'local' | 'nodes' | 'ray' | 'spark' | 'inline' | undefined>(true)
await Runners.runTask(tasks, { engineName: EngineName.LOCAL })
await Runners.runTask(tasks, { engineName: 'nodes' })
// @ts-expect-error: no such engine
await Runners.runTask(tasks, { engineName: 'rai' })
// @ts-expect-error: AWorld's spelling
await Runners.runTask(tasks, { worker_num: 4 })
// @ts-expect-error: a number
await Runners.runTask(tasks, { workerNum: '4' })
// @ts-expect-error: AWorld's spelling
Runners.streamTask(tasks, { engine_name: 'local' })
// @ts-expect-error: unknown key, with one task
await Runners.runTask(explain.task('x'), { workers: 4 })
// @ts-expect-error: no such engine
Runners.syncRunTask(tasks, { engineName: 'rai' })

// ---- attempts

await Runners.runTask(tasks, {
  maxAttempts: 3,
  retryIf: ({ code }, { attempt }) => code === 'TASK_TIMEOUT' && attempt < 2,
})
await Runners.runTask(tasks, {
  retryIf: (error, about) => {
    same<typeof error, TaskError>(true)
    same<typeof about, { readonly taskId: string; readonly attempt: number }>(true)
    return true
  },
})
// @ts-expect-error: the run does not wait for an answer
await Runners.runTask(tasks, { retryIf: async () => true })
// @ts-expect-error: true or false
await Runners.runTask(tasks, { retryIf: ({ message }) => message.match(/429/) })
void new RetryableError('rate limited', { retryAfterMs: 2000, cause: new Error('HTTP 429') })
void new RetryableError('rate limited')
void new FatalError('no such user', { cause: 404 })
// @ts-expect-error: milliseconds, as a number
void new RetryableError('rate limited', { retryAfterMs: '2s' })
// @ts-expect-error: there is no next attempt to wait for
void new FatalError('no such user', { retryAfterMs: 5 })

// ---- blobs

await Runners.runTask(tasks, { blobs: { weights: new Uint8Array(3), table: new SharedBlob(Buffer.from('x')) } })
// @ts-expect-error: bytes, not text
await Runners.runTask(tasks, { blobs: { weights: 'x' } })
defineAgent({
  name: 'reads',
  run: async (_: string, ctx) => same<Awaited<ReturnType<typeof ctx.blob>>, Uint8Array>(true),
})

// ---- engines of one's own

await Runners.runTask(tasks, { cls: LocalRuntime })
await Runners.runTask(tasks, { cls: () => new LocalRuntime() })
await Runners.runTask(tasks, { cls: new LocalRuntime() })
// @ts-expect-error: not an engine
await Runners.runTask(tasks, { cls: class {} })
// @ts-expect-error: not an engine
await Runners.runTask(tasks, { cls: {} })

// ---- the executor

await using executor = new DistributedExecutor({ workerNum: 2, maxQueueSize: 10 })
same<ReturnType<typeof executor.submitTask>, string>(true)
executor.submitTask(explain.task('x'))
executor.submitTask({ input: 'x', agent: explain, id: 'a' })
// @ts-expect-error: tasks come one by one
executor.submitTask(tasks)
// @ts-expect-error: has no meaning here
new DistributedExecutor({ sequenceDependent: true })

await Runners.runTask(tasks, { limits: { github: { perMinute: 80 } } })
// @ts-expect-error: one of them
await Runners.runTask(tasks, { limits: { github: { perMinute: 80, perHour: 5000 } } })
// @ts-expect-error: not by the day
await Runners.runTask(tasks, { limits: { github: { perDay: 80 } } })

// ---- engines

await Runners.runTask(tasks, { engine: 'local' })
await Runners.runTask(tasks, { engine: ray({ address: 'auto', inLocal: true }) })
await Runners.runTask(tasks, { engine: spark({ remote: 'sc://a:1' }) })
await Runners.runTask(tasks, { engine: nodes({ addresses: ['a:1'] }) })
await Runners.runTask(tasks, { engine: inline() })
await Runners.runTask(tasks, { engine: LocalRuntime })
await Runners.runTask(tasks, { engine: () => new LocalRuntime() })
// @ts-expect-error: no such engine
await Runners.runTask(tasks, { engine: 'rai' })
// @ts-expect-error: an option of another engine
ray({ remote: 'sc://a:1' })
// @ts-expect-error: nodes are never started here
nodes({ inLocal: true })
// @ts-expect-error: it has no options
inline({ workers: 4 })
