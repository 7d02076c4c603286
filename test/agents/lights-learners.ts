import { writeFileSync } from 'node:fs'
import { type Batch, gradientLearner, type Learner, type LearnerHost, softmaxCore } from 'manyworlds/train'
import { lightsPolicy } from './lights.ts'

interface Trouble {
  /** At which update, from 1. */
  readonly at: number
  readonly how: 'throw' | 'nan' | 'die' | 'never-ends'
  /** It happens only if this file is not there. */
  readonly once?: string
}

/** A learner with which something goes wrong. */
export function troubledLearner({ at, how, once }: Trouble, host?: LearnerHost): Learner {
  host?.notice(`a learner that will ${how}`)
  const learner = gradientLearner(softmaxCore(lightsPolicy), { loss: { name: 'clip' }, lr: 0.1 })
  let updates = 0
  return Object.assign(Object.create(learner) as Learner, {
    start: async (options: Parameters<Learner['start']>[0]) => {
      const first = await learner.start(options)
      updates = first.ref.version
      return first
    },
    update: async (batch: Batch) => {
      if (++updates === at && isFirst(once)) {
        if (how === 'throw') throw new Error('the learner has had enough')
        if (how === 'nan') return { loss: Number.NaN }
        if (how === 'die') process.exit(7)
        if (how === 'never-ends') for (;;);
      }
      return learner.update(batch)
    },
    ...Object.fromEntries(
      (['publish', 'retire', 'save', 'load'] as const).map((name) => [name, learner[name].bind(learner)]),
    ),
  })
}

function isFirst(file: string | undefined): boolean {
  if (file === undefined) return true
  try {
    writeFileSync(file, '', { flag: 'wx' })
    return true
  } catch {
    return false
  }
}
