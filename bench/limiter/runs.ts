import { type RunConfig, Runners } from 'manyworlds'
import type { LimiterSettings } from '../../src/models/driver/limiter.ts'
import { startNode } from '../../test/nodes/daemon.ts'
import { answering } from './agents.ts'

/** Two runs of one driver at the same time: two workers on this machine, two on a node. They share the limiter. */
export async function callFromRuns(
  limits: LimiterSettings,
  { url, calls, tokens }: { readonly url: string; readonly calls: number; readonly tokens: boolean },
): Promise<void> {
  const node = await startNode({ args: ['--workers', '2'] })
  try {
    const model = { baseURL: url, model: 'm', ...limits, permitTimeoutMs: 600_000 }
    const base: RunConfig = { store: false, workerNum: 2, concurrency: 64, models: { m: model } }
    const engines: RunConfig[] = [base, { ...base, engineName: 'nodes', nodes: { addresses: [node.address] } }]
    // Workers are started, and have loaded the agent, before the first call counts.
    await Promise.all(
      engines.map((config) =>
        Runners.runTask(
          [0, 0].map(() => answering.task(null)),
          config,
        ),
      ),
    )
    const tasks = Array.from({ length: calls / engines.length }, () => answering.task({ tokens }))
    for (const responses of await Promise.all(engines.map((config) => Runners.runTask(tasks, config))))
      for (const { error } of responses.values()) if (error) throw error
  } finally {
    await Runners.shutdown()
    await node.kill('SIGTERM')
  }
}
