import { parentPort, workerData } from 'node:worker_threads'
import { ManyworldsError } from '../errors.ts'
import { wordsOf } from '../text/thrown.ts'
import type { Learner } from './learner.ts'
import {
  type FromLearner,
  LEARNER_METHODS,
  type LearnerCall,
  type LearnerThreadData,
  type SentError,
} from './learner-messages.ts'
import { wrongMetric } from './metrics.ts'

/** The thread of a learner: imports it, then answers calls one at a time. */
const port = parentPort!
const { module, name, options } = workerData as LearnerThreadData

function send(message: FromLearner): void {
  port.postMessage(message, [...buffersOf(message)])
}

/** Buffers that can be transferred instead of copied. */
function* buffersOf(message: FromLearner): Iterable<ArrayBuffer> {
  if (message.type !== 'result') return
  const { value } = message
  const bytes = value instanceof Uint8Array ? value : (value as { bytes?: unknown } | undefined)?.bytes
  // Not part of a Buffer pool, which others use too.
  if (
    bytes instanceof Uint8Array &&
    bytes.buffer instanceof ArrayBuffer &&
    bytes.byteLength === bytes.buffer.byteLength
  )
    yield bytes.buffer
}

const sent = (error: unknown): SentError => ({
  ...wordsOf(error),
  code: ManyworldsError.is(error) ? error.code : undefined,
})

async function make(): Promise<Learner> {
  const exported = ((await import(module)) as Record<string, unknown>)[name]
  if (typeof exported !== 'function')
    throw new ManyworldsError(
      'LEARNER_INVALID',
      `${module} does not export a function '${name}'; export a function that returns a learner`,
    )
  const notice = (line: string) => send({ type: 'notice', line })
  const learner = (await exported(options, { notice })) as Learner
  const missing = LEARNER_METHODS.find((method) => typeof learner?.[method] !== 'function')
  if (missing !== undefined)
    throw new ManyworldsError(
      'LEARNER_INVALID',
      `'${name}' of ${module} did not return a learner: \`${missing}\` is missing`,
    )
  return learner
}

/** Set after an update with non-finite metrics: the weights may be corrupt. */
let corrupted: string | undefined

async function call(learner: Learner, { method, args }: LearnerCall): Promise<unknown> {
  if (method === 'load' || method === 'start') corrupted = undefined
  else if (corrupted !== undefined && method !== 'retire')
    throw new ManyworldsError('LEARNER_FAILED', `${corrupted}; \`load\` the state of the last good version first`)
  if (typeof learner[method] !== 'function')
    throw new ManyworldsError('LEARNER_INVALID', `the learner has no \`${method}\`, but advantages by 'gae' need it`)
  const value: unknown = await (learner[method] as (...args: unknown[]) => unknown)(...args)
  const wrong = method === 'update' ? wrongMetric(value) : undefined
  if (wrong === undefined) return value
  corrupted = `the last update failed: ${wrong}`
  throw new ManyworldsError('LEARNER_FAILED', corrupted)
}

try {
  const learner = await make()
  let last: Promise<unknown> = Promise.resolve()
  port.on('message', (message: LearnerCall) => {
    last = last.then(async () => {
      try {
        send({ type: 'result', id: message.id, value: await call(learner, message) })
      } catch (error) {
        send({ type: 'error', id: message.id, error: sent(error), ended: learner.ended ?? false })
      }
    })
  })
  send({ type: 'ready' })
} catch (error) {
  send({ type: 'unusable', error: sent(error) })
}
