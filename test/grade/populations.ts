import { seeded } from '../../src/random.ts'

/** Made-up populations of tasks, of which the true figures are known: for simulations of coverage. */

export type Random = () => number

/** How probable it is that a rollout of a task drawn from the population solves it; tasks differ in it. */
export interface Population {
  readonly name: string
  draw(random: Random): number
  /** The mean of p, and of (1-p)^k: exact, not simulated. */
  readonly mean: number
  failAll(k: number): number
}

/** All tasks are equally hard. */
export const equal = (mean: number): Population => ({
  name: 'equal',
  draw: () => mean,
  mean,
  failAll: (k) => (1 - mean) ** k,
})

/** Beta-distributed: the smaller the concentration, the more tasks are nearly always or nearly never solved. */
export const beta = (mean: number, concentration: number): Population => {
  const [a, b] = [concentration * mean, concentration * (1 - mean)]
  return {
    name: `beta ${concentration}`,
    draw: (random) => drawBeta(random, a, b),
    mean,
    failAll: (k) => Array.from({ length: k }, (_, i) => (b + i) / (a + b + i)).reduce((x, y) => x * y, 1),
  }
}

/** A task is always solved or never. */
export const always = (mean: number): Population => ({
  name: 'always or never',
  draw: (random) => (random() < mean ? 1 : 0),
  mean,
  failAll: (k) => (k === 0 ? 1 : 1 - mean),
})

/** All tasks are equally hard, but for a few that are broken (or trivial): those make half of the shortfall. */
export const fewBroken = (mean: number): Population => {
  const high = mean > 0.5
  const share = (high ? 1 - mean : mean) / 2
  const odd = high ? 0 : 1
  const usual = (mean - share * odd) / (1 - share)
  return {
    name: 'few broken',
    draw: (random) => (random() < share ? odd : usual),
    mean,
    failAll: (k) => share * (1 - odd) ** k + (1 - share) * (1 - usual) ** k,
  }
}

export const populationsOf = (mean: number): readonly Population[] => [
  equal(mean),
  beta(mean, 8),
  beta(mean, 1),
  beta(mean, 0.2),
  always(mean),
  fewBroken(mean),
]

/** The rollouts of so many tasks of a population. */
export function drawTasks(population: Population, tasks: number, rollouts: number, random: Random): boolean[][] {
  return Array.from({ length: tasks }, () => {
    const p = population.draw(random)
    return Array.from({ length: rollouts }, () => random() < p)
  })
}

/** The variance of a task's mean over its rollouts: between tasks, and of the rollouts. */
export function varianceOfTaskMean({ mean, failAll }: Population, rollouts: number): number {
  // The mean of (1-p)² gives the variance of p.
  const between = failAll(2) - (1 - mean) ** 2
  return between + (mean * (1 - mean) - between) / rollouts
}

export const randomOf = (seed: number): Random => seeded(seed)

export function drawBeta(random: Random, a: number, b: number): number {
  const [x, y] = [drawGamma(random, a), drawGamma(random, b)]
  // Small shapes underflow; there the distribution is all at the ends.
  return x + y === 0 ? (random() < a / (a + b) ? 1 : 0) : x / (x + y)
}

/** Marsaglia and Tsang. */
function drawGamma(random: Random, shape: number): number {
  if (shape < 1) return drawGamma(random, shape + 1) * (1 - random()) ** (1 / shape)
  const d = shape - 1 / 3
  const c = 1 / Math.sqrt(9 * d)
  for (;;) {
    const x = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
    const v = (1 + c * x) ** 3
    if (v > 0 && Math.log(1 - random()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v
  }
}
