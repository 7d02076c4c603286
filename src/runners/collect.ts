import { ManyworldsError } from '../errors.ts'
import type { RunConfig } from '../run-config.ts'
import type { TaskResponse } from '../task.ts'
import type { TasksInput } from './source-of.ts'
import { startRun } from './start-run.ts'

/** Runs tasks and gathers their responses, in the order in which the tasks were given. */
export async function collect(tasks: TasksInput, runConf: RunConfig | undefined): Promise<Map<string, TaskResponse>> {
  const byIndex: TaskResponse[] = []
  const called = new Error('called')
  await new Promise<void>((resolve, reject) => {
    const end = (error: Error | undefined) =>
      error ? reject(fromCaller(withPartial(error, byIndex), called)) : resolve()
    startRun(tasks, runConf, {
      response(index, response) {
        byIndex[index] = response
      },
      full: () => false,
      end,
    }).catch((error: Error) => reject(fromCaller(error, called)))
  })
  return toMap(byIndex)
}

function toMap(byIndex: readonly (TaskResponse | undefined)[]): Map<string, TaskResponse> {
  const map = new Map<string, TaskResponse>()
  for (const response of byIndex) if (response) map.set(response.id, response)
  return map
}

/** If the run fails, its error carries the responses that had arrived. */
const withPartial = (error: Error, byIndex: readonly TaskResponse[]) =>
  Object.assign(error, { responses: toMap(byIndex) })

/** The stack of an error shows the caller, not the internals of the executor or the thread. */
function fromCaller(error: Error, called: Error): Error {
  const frames = called.stack?.slice(called.stack.indexOf('\n')) ?? ''
  if (ManyworldsError.is(error)) error.stack = `${error.name}: ${error.message}${frames}`
  return error
}
