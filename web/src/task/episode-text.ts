import type { BranchEnd } from '../../../src/trajectory/branches.ts'
import { figure } from '../text/quantities.ts'

/** `truncated by maxSteps, reward 0.5, not solved` */
export function episodeText({ ending, reward, success }: Omit<BranchEnd, 'finalObservation'>): string {
  const how = ending.kind === 'truncated' ? `truncated by ${ending.by}` : ending.kind
  const solved = success === null ? '' : success ? 'solved' : 'not solved'
  return [how, reward === null ? '' : `reward ${figure(reward)}`, solved].filter(Boolean).join(', ')
}
