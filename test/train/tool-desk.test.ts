import { expect, test } from 'vitest'
import { softmaxPolicy } from '../../dist/train/softmax/softmax-policy.js'
import type { DeskObservation } from '../../examples/tool-desk/desk.ts'
import { deskFeatures } from '../../examples/tool-desk/features.ts'
import { heldOutSuccess, trainDesk } from './desk-training.ts'

const policy = softmaxPolicy<DeskObservation, string>({ name: 'clerk', features: deskFeatures })
/** Seconds of one core, and more where others use it too. */
const TIMEOUT_MS = 300_000
const training = { policy, seed: 1, algorithm: { loss: { name: 'clip' }, lr: 0.05 } } as const

async function last(more: { updates: number; shuffleRewards?: boolean; show?: boolean }) {
  let last: { bytes: Uint8Array | null; ref: { digest: string | null } } | undefined
  for await (const after of trainDesk({ ...training, ...more })) {
    last = after
    if (more.show && after.update % 20 === 0) {
      const heldOut = heldOutSuccess(policy, after.bytes)
      console.log(`${after.update * 128} episodes: training ${after.reward.toFixed(3)}, held out ${heldOut.toFixed(3)}`)
    }
  }
  return last!
}

test(
  'a policy learns the tool desk, and puts together operations that it never saw together',
  async () => {
    expect(heldOutSuccess(policy, null, { rollouts: 4 })).toBeLessThan(0.1)
    const { bytes, ref } = await last({ updates: 200, show: true })
    expect(heldOutSuccess(policy, bytes, { rollouts: 4 })).toBeGreaterThan(0.95)
    expect(heldOutSuccess(policy, bytes, { mode: 'greedy' })).toBeGreaterThan(0.98)
    // The same seed gives the same weights, on every machine.
    expect(ref.digest).toBe('d3ccf57d38a0d1ed6a5bb6a0f9fe1334cc7b6a201317aed62c0292abeb507f81')
  },
  TIMEOUT_MS,
)

test(
  'with rewards dealt out at random it learns nothing',
  async () => {
    const { bytes } = await last({ updates: 60, shuffleRewards: true })
    expect(heldOutSuccess(policy, bytes, { rollouts: 4 })).toBeLessThan(0.1)
  },
  TIMEOUT_MS,
)
