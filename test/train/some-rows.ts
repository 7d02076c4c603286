import { seeded } from '../../dist/random.js'
import { log } from '../../dist/train/exact-math.js'
import type { ActionRow } from '../../dist/train/row.js'

/** Some rows whose features overlap, of any numbers. */
export function someRows(count: number, seed = 1): ActionRow[] {
  const random = seeded(seed)
  return Array.from({ length: count }, (_, i) => {
    const candidates = ['go left', 'go right', { jump: 1 + (i % 3) }].slice(0, 2 + (i % 2))
    const index = Math.floor(random() * candidates.length)
    return {
      kind: 'action',
      observation: { text: `room ${i % 5} to the left`, at: [i % 4, random() * 10], open: i % 2 === 0 },
      ...{ candidates, action: candidates[index], index },
      behavior: -log(candidates.length) + (random() - 0.5) / 10,
      advantage: random() * 2 - 1,
      return: random(),
      ...{ weight: 1 / count, version: 0 },
    }
  })
}
