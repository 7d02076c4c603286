import { seeded } from '../../dist/random.js'
import { log } from '../../dist/train/exact-math.js'
import type { ActionRow } from '../../dist/train/row.js'

export const ACTIONS: readonly unknown[] = ['left', 'right', { jump: 2 }]

/** Rows with two numbers as the observation, and two or three of the actions as candidates, in any order. */
export function neuralRows(count: number, seed = 1): ActionRow[] {
  const random = seeded(seed)
  return Array.from({ length: count }, (_, i) => {
    const all = i % 3 === 0 ? ACTIONS.toReversed() : ACTIONS
    const candidates = all.slice(0, 2 + (i % 2))
    const index = Math.floor(random() * candidates.length)
    return {
      kind: 'action',
      observation: [random() * 2 - 1, random() * 2 - 1],
      ...{ candidates, action: candidates[index], index },
      behavior: -log(candidates.length) + (random() - 0.5) / 10,
      advantage: random() * 2 - 1,
      return: random(),
      ...{ weight: 1 / count, version: 0 },
    }
  })
}
