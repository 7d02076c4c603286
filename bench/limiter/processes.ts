import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { CallerMessage, CallerSettings } from './caller.ts'
import type { Gate, Held } from './gates.ts'

const PROCESSES = 4

/** Makes calls from four processes, which ask this one for permits. */
export async function callFromProcesses(
  gate: Gate | undefined,
  { calls, ...settings }: Omit<CallerSettings, 'permits'>,
): Promise<void> {
  const permits = gate === undefined ? 'none' : gate.perCall ? 'per-call' : 'per-try'
  const each = JSON.stringify({ ...settings, permits, calls: calls / PROCESSES } satisfies CallerSettings)
  const children = Array.from({ length: PROCESSES }, () => fork(new URL('caller.ts', import.meta.url), [each]))
  try {
    const ended = children.map((child) => once(child, 'exit'))
    await Promise.all(children.map((child) => serve(child, gate)))
    for (const child of children) child.send('start')
    for (const [code] of await Promise.all(ended)) if (code !== 0) throw new Error(`a caller ended with ${code}`)
  } finally {
    for (const child of children) child.kill()
  }
}

/** Resolves when the child is ready to start. */
function serve(child: ChildProcess, gate: Gate | undefined): Promise<void> {
  const permits = new Map<number, Held>()
  const callers = new Map<number, object>()
  const { promise, resolve } = Promise.withResolvers<void>()
  child.on('message', async (message: CallerMessage) => {
    switch (message.type) {
      case 'ready':
        return resolve()
      case 'acquire': {
        const { id, call, tokens, first } = message
        let by = callers.get(call)
        if (by === undefined) callers.set(call, (by = {}))
        permits.set(id, await gate!.acquire(by, tokens, first))
        return void child.send(id)
      }
      case 'refused':
        return permits.get(message.id)!.refused!(message.retryAfterMs)
      case 'settle':
        permits.get(message.id)!.settle(message.outcome)
        return void permits.delete(message.id)
      default:
        message satisfies never
    }
  })
  return promise
}
