import type { World } from './world.ts'

const MAP = 'SFFFFHFHFFFHHFFG'
const SIDE = 4
const GOAL = 15

const isEnd = (square: number): boolean => MAP[square] === 'H' || MAP[square] === 'G'

/** Where a step leads: 0 left, 1 down, 2 right, 3 up. */
function moved(square: number, direction: number): number {
  const [row, column] = [Math.floor(square / SIDE), square % SIDE]
  if (direction === 0) return column === 0 ? square : square - 1
  if (direction === 1) return row === SIDE - 1 ? square : square + SIDE
  if (direction === 2) return column === SIDE - 1 ? square : square + 1
  return row === 0 ? square : square - SIDE
}

/** On ice, a step goes where it should or to one of the sides, equally likely. */
const slips = (action: number): readonly number[] => [(action + 3) % 4, action, (action + 1) % 4]

/** FrozenLake-v1, 4x4 and slippery. */
export const frozenLake: World<number> = {
  actions: [0, 1, 2, 3],
  maxSteps: 100,
  reset: () => 0,
  step(square, action, random) {
    const observation = moved(square, slips(action)[Math.floor(random() * 3)]!)
    return { observation, reward: observation === GOAL ? 1 : 0, done: isEnd(observation) }
  },
}

/** The probability to reach the goal within the limit, exactly, of a policy that gives each action on each square a probability. */
export function successOf(probability: (square: number, action: number) => number): number {
  let reached = 0
  let at = new Float64Array(SIDE * SIDE)
  at[0] = 1
  for (let step = 0; step < frozenLake.maxSteps; step++) {
    const next = new Float64Array(SIDE * SIDE)
    for (let square = 0; square < at.length; square++) {
      if (at[square] === 0) continue
      for (const action of frozenLake.actions)
        for (const direction of slips(action)) {
          const to = moved(square, direction)
          const mass = (at[square]! * probability(square, action)) / 3
          if (to === GOAL) reached += mass
          else if (!isEnd(to)) next[to] = next[to]! + mass
        }
    }
    at = next
  }
  return reached
}
