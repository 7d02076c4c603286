import type { World } from './world.ts'

const GRAVITY = 9.8
const POLE_MASS = 0.1
const TOTAL_MASS = 1.1
const HALF_LENGTH = 0.5
const FORCE = 10
const SECONDS = 0.02
const MOST_X = 2.4
const MOST_ANGLE = (12 * 2 * Math.PI) / 360

/** CartPole-v1: the equations of Gymnasium, stepped by Euler's method. */
export const cartPole: World<readonly number[]> = {
  actions: [0, 1],
  maxSteps: 500,
  reset: (random) => Array.from({ length: 4 }, () => random() * 0.1 - 0.05),
  step([x, speed, angle, turning], action) {
    const force = action === 1 ? FORCE : -FORCE
    const [cos, sin] = [Math.cos(angle!), Math.sin(angle!)]
    const pull = (force + POLE_MASS * HALF_LENGTH * turning! ** 2 * sin) / TOTAL_MASS
    const turn = (GRAVITY * sin - cos * pull) / (HALF_LENGTH * (4 / 3 - (POLE_MASS * cos ** 2) / TOTAL_MASS))
    const push = pull - (POLE_MASS * HALF_LENGTH * turn * cos) / TOTAL_MASS
    const next = [
      x! + SECONDS * speed!,
      speed! + SECONDS * push,
      angle! + SECONDS * turning!,
      turning! + SECONDS * turn,
    ]
    const done = Math.abs(next[0]!) > MOST_X || Math.abs(next[2]!) > MOST_ANGLE
    return { observation: next, reward: 1, done }
  },
}
