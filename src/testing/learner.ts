import { anyOrderCase, learnerCases } from './learner-cases.ts'
import type { LearnerFactory, LearnerKitOptions } from './learner-kit.ts'
import { testRunner } from './runner.ts'

export type { LearnerFactory, LearnerKitOptions } from './learner-kit.ts'

const CASE_TIMEOUT_MS = 300_000
const { describe, it } = await testRunner()

/**
 * Checks a learner against the guarantees that training relies on. Call it in a test file of Vitest or node:test. The factory is
 * called for each case, and makes a learner of version 0 whose policy chooses among candidates.
 *
 * @example
 * const policy = softmaxPolicy()
 * testLearner('mine', {
 *   learner: () => gradientLearner(softmaxCore(policy), { loss: { name: 'clip' }, lr: 0.1 }),
 *   open: (bytes) => policy.openBytes(bytes),
 * })
 */
export function testLearner(name: string, factory: LearnerFactory, options: LearnerKitOptions = {}): void {
  describe(`the learner ${name} keeps its promises`, () => {
    const { updates = 60, anyOrder = true } = options
    for (const { name: promise, run } of anyOrder ? [...learnerCases, anyOrderCase] : learnerCases)
      it(promise, { timeout: CASE_TIMEOUT_MS }, () => run({ ...factory, updates, anyOrder }))
  })
}
