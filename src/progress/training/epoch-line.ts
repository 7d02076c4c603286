import { count } from '../../text/quantities.ts'
import type { EpochReport } from '../../train/pipeline/epoch-report.ts'
import { evaluationText, valueText } from './figure-text.ts'

/** What an epoch came to, on one line. */
export function epochLine(report: EpochReport, epochs: number): string {
  const { epoch, updates, version, successRate, reward, validation, test } = report
  const judged = validation && evaluationText(validation)
  const tested = test && evaluationText(test)
  const parts = [
    `epoch ${count(epoch)}${Number.isFinite(epochs) ? `/${count(epochs)}` : ''}: ${count(updates)} updates, version ${version}`,
    successRate === null
      ? `reward ${reward === null ? 'none' : valueText(reward, 'reward')}`
      : `success ${valueText(successRate, 'success')}`,
    ...(judged ? [`validation ${judged}`] : []),
    ...(tested ? [`test ${tested}`] : []),
  ]
  return parts.join('; ')
}
