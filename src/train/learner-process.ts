import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { workerFlags } from '../runners/environment.ts'
import {
  LearnerCalls,
  type LearnerLimits,
  type LearnerReference,
  moduleUrl,
  optionsNotPlain,
  type RunningLearner,
} from './learner-calls.ts'
import type { FromLearner, LearnerThreadData } from './learner-messages.ts'

/** A learner in its own process. */
export interface LearnerProcess extends RunningLearner {
  readonly pid: number | undefined
}

/**
 * Like `runLearnerInThread`, in a process: for learners that may crash, use much memory, or start processes of their own. It exits with this process,
 * even if that is killed, together with the processes it started.
 *
 * @example
 * const learner = await runLearnerInProcess({ module: new URL('./learner.ts', import.meta.url), export: 'makeLearner' })
 */
export async function runLearnerInProcess(
  reference: LearnerReference,
  limits: LearnerLimits = {},
): Promise<LearnerProcess> {
  const { export: name, options } = reference
  const data: LearnerThreadData = { module: moduleUrl(reference), name, options, memoryMb: limits.memoryMb }
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const child = fork(fileURLToPath(new URL(`./learner-process-main${extension}`, import.meta.url)), [], {
    execArgv: workerFlags(process.execArgv),
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // A separate process group, so that Ctrl-C reaches only the driver, which decides what to do with the learner.
    detached: true,
  })
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  const kill = async () => {
    killGroup(child)
    await exited
  }
  try {
    child.send(data)
  } catch (error) {
    await kill()
    throw optionsNotPlain(error)
  }
  const calls = new LearnerCalls(
    {
      kind: 'process',
      // A failed send is ignored: the process has exited, and its exit is reported.
      post: (message) => void child.send(message, () => {}),
      keepAlive: (alive) => keepAlive(child, alive),
      kill,
    },
    limits,
  )
  child.on('message', (message: FromLearner) => calls.receive(message))
  child.on('error', (error) => calls.end(`could not start: ${error.message}`, error))
  child.on('exit', (code, signal) => {
    // Processes that it started may still be running.
    killGroup(child)
    calls.end(signal === null ? `exited with code ${code}` : `was killed by ${signal}`)
  })
  keepAlive(child, false)
  await calls.ready(limits)
  return Object.assign(calls, { pid: child.pid })
}

function keepAlive(child: ChildProcess, alive: boolean): void {
  for (const handle of [child, child.channel]) alive ? handle?.ref() : handle?.unref()
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // Already gone.
  }
}
