import type { PolicyLearning } from '../../agents/policy.ts'
import type { Algorithm } from '../algorithm.ts'
import type { TrainReport } from '../rl-trainer.ts'

/** Policies that act and learn with the same code differ by rounding in the last bits at most. */
const SAME_CODE_KL = 1e-12

/**
 * An alarm if the learner gives what was sampled other probabilities than the sampler did. Only for an update of one
 * step on data of the current version: there, the two must agree as far as their arithmetic does.
 */
export function samplerMismatch(
  { metrics, staleness }: Pick<TrainReport, 'metrics' | 'staleness'>,
  algorithm: Required<Algorithm> | undefined,
  learning: Pick<PolicyLearning, 'samplerKl'> | undefined,
): string[] {
  const { klFromBehavior: kl } = metrics as { klFromBehavior?: number }
  const isFirstStep = algorithm?.epochs === 1 && algorithm.miniBatches === 1 && (staleness?.max ?? 0) === 0
  const { samplerKl = SAME_CODE_KL } = learning ?? {}
  if (!isFirstStep || kl === undefined || kl <= samplerKl) return []
  const found = `the learner computes other probabilities than the workers did (a KL divergence of ${kl.toPrecision(3)} nats per decision, where rounding explains ${samplerKl})`
  return [
    samplerKl === SAME_CODE_KL
      ? `${found}: the output of a policy must depend only on the observation and the candidate`
      : `${found}: check that the server has the base model, the adapter and the number type of the training, and returns the log-probabilities of what it sampled from`,
  ]
}
