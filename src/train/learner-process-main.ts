import { wordsOf } from '../text/thrown.ts'
import { endProcess } from '../worker/watchdog-contract.ts'
import { HEARTBEAT_MS } from './heartbeat.ts'
import type { FromLearner, LearnerCall, LearnerThreadData } from './learner-messages.ts'
import { startLearnerThread } from './learner-thread.ts'

/**
 * The process of a learner. The learner runs in a thread, so the main thread stays responsive: it forwards messages
 * and, when the driver disconnects for any reason, exits even in the middle of an update.
 */
process.on('disconnect', endProcess)

// Also while the thread loads its module or computes: silence means that the process is stopped.
setInterval(() => send({ type: 'heartbeat' }), HEARTBEAT_MS)

const send = (message: FromLearner, then?: () => void) => void process.send!(message, () => then?.())

process.once('message', (data: LearnerThreadData) => {
  const learner = startLearnerThread(data)
  learner.on('message', (message: FromLearner) => send(message))
  learner.on('error', (error) => send({ type: 'ended', how: `failed: ${wordsOf(error).message}` }))
  learner.on('exit', (code) => send({ type: 'ended', how: `exited with code ${code}` }, endProcess))
  process.on('message', (call: LearnerCall) => learner.postMessage(call))
})
