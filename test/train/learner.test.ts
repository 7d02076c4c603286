import { testLearner } from '../../dist/testing/learner.js'
import { gradientLearner } from '../../dist/train/gradient-learner.js'
import { runLearnerInProcess } from '../../dist/train/learner-process.js'
import { runLearnerInThread } from '../../dist/train/learner-thread.js'
import { softmaxCore } from '../../dist/train/softmax/softmax-core.js'
import { softmaxPolicy } from '../../dist/train/softmax/softmax-policy.js'
import { kitPolicy, learns } from './learners/learners.ts'

testLearner('of softmax', { learner: learns, open: (bytes) => kitPolicy.openBytes(bytes) })

testLearner('of softmax in a thread', {
  learner: () => runLearnerInThread({ module: new URL('./learners/learners.ts', import.meta.url), export: 'learns' }),
  open: (bytes) => kitPolicy.openBytes(bytes),
})

testLearner('of softmax in a process', {
  learner: () => runLearnerInProcess({ module: new URL('./learners/learners.ts', import.meta.url), export: 'learns' }),
  open: (bytes) => kitPolicy.openBytes(bytes),
})

const withValue = softmaxPolicy({ bits: 10, value: true, temperature: 0.7 })
const withAll = {
  learner: () =>
    gradientLearner(softmaxCore(withValue), {
      loss: { name: 'clip' as const, value: 0.5, entropy: 0.001, kl: 0.001 },
      ...{ lr: 0.1, epochs: 2, miniBatches: 3, clipNorm: 1, proximal: 'learner' as const },
    }),
  open: (bytes: Uint8Array) => withValue.openBytes(bytes),
}
// Mini-batches are drawn by the places of rows.
testLearner('of softmax with all that it can', withAll, { anyOrder: false })
