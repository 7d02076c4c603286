import { Worker } from 'node:worker_threads'
import { wordsOf } from '../text/thrown.ts'
import {
  LearnerCalls,
  type LearnerLimits,
  type LearnerReference,
  moduleUrl,
  optionsNotPlain,
  type RunningLearner,
} from './learner-calls.ts'
import type { FromLearner, LearnerThreadData } from './learner-messages.ts'

/**
 * Runs a learner in its own thread, so that collecting continues while it learns. Rows are copied; groups arrive as plain data. An error of the learner
 * is rethrown here, with its code or `LEARNER_FAILED`. If the thread exits by itself, all calls fail: start another one with the state of the last good
 * version.
 *
 * @example
 * const learner = await runLearnerInThread({ module: new URL('./learner.ts', import.meta.url), export: 'makeLearner' })
 */
export async function runLearnerInThread(
  reference: LearnerReference,
  limits: LearnerLimits = {},
): Promise<RunningLearner> {
  const { export: name, options } = reference
  let worker: Worker
  try {
    worker = startLearnerThread({ module: moduleUrl(reference), name, options, memoryMb: limits.memoryMb })
  } catch (error) {
    throw (error as Error).name === 'DataCloneError' ? optionsNotPlain(error) : error
  }
  worker.unref()
  const calls = new LearnerCalls(
    {
      kind: 'thread',
      post: (message) => worker.postMessage(message),
      keepAlive: (alive) => (alive ? worker.ref() : worker.unref()),
      kill: async () => void (await worker.terminate()),
    },
    limits,
  )
  worker.on('message', (message: FromLearner) => calls.receive(message))
  worker.on('error', (error) => calls.end(`failed: ${wordsOf(error).message}`, error))
  worker.on('exit', (code) => calls.end(`exited with code ${code}`))
  await calls.ready(limits)
  return calls
}

export function startLearnerThread(data: LearnerThreadData): Worker {
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const { memoryMb } = data
  return new Worker(new URL(`./learner-thread-main${extension}`, import.meta.url), {
    workerData: data,
    name: 'manyworlds learner',
    ...(memoryMb !== undefined && { resourceLimits: { maxOldGenerationSizeMb: memoryMb } }),
  })
}
