import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { ModelServerStats, RequestFilter, RequestRecord } from './scripted/journal.ts'
import { ASK, createModelServer, type ModelServerOptions } from './scripted/serve.ts'
import { type ServerProcess, startServerProcess } from './server-process.ts'

/**
 * A model server that does what the request's model says: `tools:3` calls a tool in three rounds, `500:2+text` fails twice, then
 * answers. scripted/content.ts, scripted/faults.ts and scripted/scenario.ts have the names. From a test or a benchmark:
 *
 *     const server = await startModelServer({ window: { requests: 40 } })
 *
 * It has a process of its own: a busy test does not slow it down. By hand:
 *
 *     node test/models/scripted-server.ts --port 8080 --options '{"latencyMs": 100}'
 */

const START_MS = 60_000
const ASK_MS = 30_000

export interface ModelServer extends ServerProcess {
  /** For the settings of a model: `http://127.0.0.1:38941/v1`. */
  readonly baseURL: string
  /** In the order in which they came. */
  requests(filter?: RequestFilter): Promise<RequestRecord[]>
  stats(): Promise<ModelServerStats>
  /** Sends the answers that `holdAfter` has held back. */
  release(): Promise<void>
}

export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const args = [fileURLToPath(import.meta.url), '--with-parent', '--options', JSON.stringify(options)]
  const server = await startServerProcess('the scripted model server', process.execPath, args, START_MS)
  const ask = async <T>(path: string): Promise<T> => {
    const response = await fetch(`${server.url}${path}`, { signal: AbortSignal.timeout(ASK_MS) })
    return (await response.json()) as T
  }
  return {
    ...server,
    baseURL: `${server.url}/v1`,
    requests: (filter = {}) => ask(`${ASK.requests}?${new URLSearchParams({ ...filter })}`),
    stats: () => ask(ASK.stats),
    release: async () => void (await ask(ASK.release)),
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      port: { type: 'string' },
      options: { type: 'string', default: '{}' },
      /** Ends at the end of standard input. */
      'with-parent': { type: 'boolean', default: false },
    },
  })
  const options = JSON.parse(values.options) as ModelServerOptions
  const server = createModelServer(options).listen(Number(values.port ?? options.port ?? 0), '127.0.0.1')
  await once(server, 'listening')
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  if (values['with-parent']) process.stdin.resume().once('close', () => process.exit())
}
