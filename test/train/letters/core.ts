import { ManyworldsError } from '../../../dist/errors.js'
import { Adam } from '../../../dist/train/adam.js'
import { ByteReader, ByteWriter } from '../../../dist/train/bytes.js'
import type { GradientCore, Metrics, Row, TokenRow } from '../../../dist/train/index.js'
import { lossRule } from '../../../dist/train/loss-settings.js'
import { addSample, lossMetrics, newTally } from '../../../dist/train/loss-tally.js'
import { sampleLoss } from '../../../dist/train/losses.js'
import { adapterOf } from './adapter.ts'
import { featuresAt, firstWeights, logProbsAt, VOCABULARY, WEIGHTS } from './model.ts'

/** The gradient of the model of letters. */
export function lettersCore(policy: string): GradientCore {
  let [weights, adam, gradient, tally] = [firstWeights(), new Adam(WEIGHTS), new Float64Array(WEIGHTS), newTally()]

  const tokens = (row: Row): TokenRow => {
    if (row.kind !== 'tokens') throw new ManyworldsError('ROW_INVALID', 'this learner takes tokens')
    return row
  }
  return {
    policy,
    async forward(rows) {
      const logProbs = rows
        .map(tokens)
        .map(({ ids, mask, temperature }) =>
          Float64Array.from(ids, (id, at) => (mask[at] === 1 ? logProbsAt(weights, ids, at, temperature)[id]! : 0)),
        )
      return { logProbs }
    },
    async forwardBackward(rows, loss): Promise<Metrics> {
      const rule = lossRule(loss)
      for (const row of rows.map(tokens)) {
        const { ids, mask, behavior, proximal, advantage, weight, temperature } = row
        for (let at = 1; at < ids.length; at++) {
          if (mask[at] !== 1) continue
          const logProbs = logProbsAt(weights, ids, at, temperature)
          const sample = {
            ...{ logProb: logProbs[ids[at]!]!, behavior: behavior[at]!, advantage: advantage[at]! },
            proximal: proximal?.[at],
          }
          const result = sampleLoss(sample, rule)
          addSample(tally, sample, result, weight[at]!)
          const [previous, letter] = featuresAt(ids, at)
          for (let id = 0; id < VOCABULARY; id++) {
            const byLogit = ((id === ids[at] ? 1 : 0) - Math.exp(logProbs[id]!)) / temperature
            const step = weight[at]! * result.byLogProb * byLogit
            gradient[previous * VOCABULARY + id]! += step
            gradient[(VOCABULARY + letter) * VOCABULARY + id]! += step
          }
        }
      }
      return lossMetrics(tally)
    },
    async optimStep(options) {
      tally = newTally()
      return adam.step(weights, gradient, options)
    },
    weights: () => adapterOf(weights),
    state() {
      const out = new ByteWriter()
      out.vector(weights)
      adam.write(out)
      return out.finish()
    },
    load(state) {
      const reader = new ByteReader(state)
      weights = reader.vector(WEIGHTS)
      adam = Adam.read(reader, WEIGHTS)
      gradient = new Float64Array(WEIGHTS)
      tally = newTally()
    },
  }
}
