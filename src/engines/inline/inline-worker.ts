import { hostname } from 'node:os'
import type { AgentRef, RunnableDefinition } from '../../agent.ts'
import { registry } from '../../registry.ts'
import { LoadError } from '../../worker/load-error.ts'
import { keepOutputWithTasks } from '../../worker/output.ts'
import { runTasksHere } from '../../worker/role.ts'
import { serveDriver } from '../../worker/serve.ts'
import { SHARED } from '../../worker/watchdog-contract.ts'
import type { WorkerLink } from '../engine.ts'
import { memoryLink, type Outside } from './memory-link.ts'
import { failTasksOfStrayErrors } from './stray-errors.ts'

/** Starts a worker in this process: the same program as in a worker process, over a link in memory. */
export function startInlineWorker(generation: number, outside: Outside, broken: (reason: string) => void): WorkerLink {
  const leaving = new AbortController()
  const identity = { id: 'inline-0', generation, info: { host: hostname(), pid: process.pid } }
  const { link, wire } = memoryLink(identity, outside, end)
  const { runner, ready } = serveDriver({
    wire,
    sideFd: undefined,
    // No watchdog reads it: a watchdog would end this process, which is the driver.
    shared: new Float64Array(SHARED.bytes / 8),
    leaving: leaving.signal,
    blobFolder: undefined,
    load: findAgent,
    broken(error) {
      broken(error?.message ?? 'the driver and its inline worker speak different protocols')
      link.kill()
    },
  })
  const undo = [
    runTasksHere({ current: runner.current }),
    keepOutputWithTasks(runner.current, printedStreams()),
    failTasksOfStrayErrors(runner),
  ]

  function end(): void {
    leaving.abort()
    // Tasks of a worker process end with it. Here they are cancelled, and their messages are ignored.
    runner.recall()
    for (const task of [...runner.live.values()]) runner.endings.cancel(task, 'cancelled')
    for (const one of undo) one()
  }

  outside(() => {
    runner.open()
    ready()
  })
  return link
}

/**
 * The agents are the driver's own: the same objects, with the same closures, mocks and breakpoints. The definition is
 * looked up for each task, because a test runner may define it anew.
 */
async function findAgent(ref: AgentRef): Promise<RunnableDefinition> {
  const find = () => registry.find(ref.module, ref.name)?.definition
  // A grader, or an agent that only a sub-task names, may be defined in a module that the driver has not imported.
  if (!find()) await import(ref.module)
  const found = find()
  if (!found)
    throw new LoadError(
      'AGENT_NOT_FOUND',
      `agent '${ref.name}' of ${ref.module} is not defined in this process; import the module that defines it`,
    )
  return { ...found, run: (input, ctx) => (find() ?? found).run(input, ctx) }
}

/** The streams that `console` writes to. Test runners replace `console`, and then its streams are not those of the process. */
function printedStreams(): Set<object> {
  const { _stdout, _stderr } = console as unknown as { _stdout?: object; _stderr?: object }
  return new Set([process.stdout, process.stderr, _stdout, _stderr].filter((stream) => stream !== undefined))
}
