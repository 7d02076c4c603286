import { type MessagePort, workerData } from 'node:worker_threads'
import { ManyworldsError } from '../errors.ts'
import { registry } from '../registry.ts'
import { responseToWire } from '../response.ts'
import type { TaskLike } from '../task.ts'
import { collect } from './collect.ts'
import type { SyncReply, SyncRequest } from './sync.ts'

/** The thread behind `syncRunTask`: the same executor, on an event loop that is not blocked. */
const { port, flag, argv } = workerData as { port: MessagePort; flag: Int32Array; argv: string[] }
// Workers look for agents in the user's script, not in this file.
process.argv = argv

port.on('message', async ({ tasks, config, agents }: SyncRequest) => {
  registry.adopt(agents)
  port.postMessage(await answer(tasks, config))
  Atomics.store(flag, 0, 1)
  Atomics.notify(flag, 0)
})

async function answer(tasks: SyncRequest['tasks'], config: SyncRequest['config']): Promise<SyncReply> {
  try {
    const responses = await collect(tasks as unknown as readonly TaskLike[], config)
    return { ok: true, responses: [...responses.values()].map(responseToWire) }
  } catch (error) {
    const { name, message, stack } = error as Error
    return { ok: false, code: ManyworldsError.is(error) ? error.code : undefined, name, message, stack }
  }
}
