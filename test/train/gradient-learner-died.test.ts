import { describe, expect, it } from 'vitest'
import { gradientLearner } from '../../dist/train/gradient-learner.js'
import type { GradientCore } from '../../dist/train/learner.js'
import { softmaxCore } from '../../dist/train/softmax/softmax-core.js'
import { softmaxPolicy } from '../../dist/train/softmax/softmax-policy.js'
import { someRows } from './some-rows.ts'

const policy = softmaxPolicy({ bits: 8 })
const algorithm = { loss: { name: 'clip' }, lr: 0.05 } as const

/** A softmax core as one in another process would be: all that it says are promises, and it may die. */
class RemoteCore implements GradientCore {
  readonly policy = 'softmax'
  readonly asked: string[] = []
  /** Dies at this call. */
  dies: string | undefined
  ended = false
  #core = softmaxCore(policy)

  forward = (...args: Parameters<GradientCore['forward']>) => this.#at('forward', () => this.#core.forward(...args))
  forwardBackward = (...args: Parameters<GradientCore['forwardBackward']>) =>
    this.#at('forwardBackward', () => this.#core.forwardBackward(...args))
  optimStep = (...args: Parameters<GradientCore['optimStep']>) =>
    this.#at('optimStep', () => this.#core.optimStep(...args))
  weights = () => this.#at('weights', () => this.#core.weights())
  state = () => this.#at('state', () => this.#core.state())

  async load(state: Uint8Array): Promise<void> {
    this.asked.push('load')
    if (this.ended) this.#core = softmaxCore(policy)
    this.#core.load(state)
    this.ended = false
  }

  async #at<T>(name: string, call: () => T | Promise<T>): Promise<T> {
    this.asked.push(name)
    if (this.dies === name) {
      this.dies = undefined
      this.ended = true
    }
    if (this.ended) throw new Error('its process was ended by SIGKILL')
    return call()
  }
}

async function started() {
  const core = new RemoteCore()
  const learner = gradientLearner(core, algorithm)
  const same = gradientLearner(softmaxCore(policy), algorithm)
  for (const one of [learner, same]) await one.start({ seed: 1 })
  return { core, learner, same }
}

describe('a learner whose core is in another process', () => {
  it('is asked for its state once per update, if it is saved after each', async () => {
    const { core, learner } = await started()
    for (let update = 0; update < 3; update++) {
      await learner.update({ rows: someRows(20, update) })
      await learner.save()
      await learner.save()
    }
    expect(core.asked.filter((name) => name === 'state')).toHaveLength(4)
  })

  it.for(['forwardBackward', 'optimStep'])(
    'that dies in %s stays at its version, and goes on from there',
    async (dies) => {
      const { core, learner, same } = await started()
      for (const one of [learner, same]) await one.update({ rows: someRows(20, 1) })
      const before = await learner.publish()
      core.dies = dies
      await expect(learner.update({ rows: someRows(20, 2) })).rejects.toThrow(
        "update 2 of policy 'softmax' failed; version 1 was kept: its process was ended by SIGKILL",
      )
      expect(learner.ended).toBe(true)
      expect(await learner.publish()).toEqual(before)
      expect(learner.ended).toBe(false)
      for (const one of [learner, same]) await one.update({ rows: someRows(20, 2) })
      expect(await learner.save()).toEqual(await same.save())
    },
  )

  it('that dies after an update that nobody saved has lost it, and says so', async () => {
    const { core, learner, same } = await started()
    for (const one of [learner, same]) await one.update({ rows: someRows(20, 1) })
    const saved = await same.save()
    core.dies = 'weights'
    await expect(learner.publish()).rejects.toThrow('its process was ended by SIGKILL')
    await expect(learner.save()).rejects.toThrow('its process was ended by SIGKILL')
    await learner.start({ seed: 1, state: saved })
    expect(learner.ended).toBe(false)
    expect(await learner.save()).toEqual(saved)
  })
})
