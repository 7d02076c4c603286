import { wordsOf } from '../text/thrown.ts'
import { endProcess } from '../worker/end-process.ts'
import type { FromLearner, LearnerCall, LearnerThreadData } from './learner-messages.ts'
import { startLearnerThread } from './learner-thread.ts'

/**
 * The process of a learner. The learner is in a thread of it, so that this thread is never busy: it passes messages on and, when the driver is gone,
 * whatever became of it, ends the process in the middle of an update.
 */
process.on('disconnect', endProcess)

const say = (message: FromLearner, then?: () => void) => void process.send!(message, () => then?.())

process.once('message', (data: LearnerThreadData) => {
  const learner = startLearnerThread(data)
  learner.on('message', (message: FromLearner) => say(message))
  learner.on('error', (error) => say({ type: 'ended', how: `failed: ${wordsOf(error).message}` }))
  learner.on('exit', (code) => say({ type: 'ended', how: `ended with exit code ${code}` }, endProcess))
  process.on('message', (call: LearnerCall) => learner.postMessage(call))
})
