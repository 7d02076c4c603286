import { compareRuns, type Interval, meanReward, type Outcome, passRate, successRate } from 'manyworlds/grade'
import { quantile } from '../src/grade/dirichlet.ts'
import {
  beta,
  drawBeta,
  drawTasks,
  type Population,
  populationsOf,
  type Random,
  randomOf,
  varianceOfTaskMean,
} from '../test/grade/populations.ts'
import { numberOf } from './figures.ts'
import { describeMachine } from './machine.ts'

/**
 * How often the intervals hold the truth, in populations of tasks of which it is known, and how wide they are.
 *
 *   node bench/coverage.ts [--repetitions N] [--seed N]
 */
const REPETITIONS = numberOf('--repetitions', 2000)
const SEED = numberOf('--seed', 1)
const CONFIDENCE = 0.95
const TASKS = [10, 20, 27, 50, 100, 200]
const MEANS = [0.02, 0.5, 0.98]
const ROLLOUTS = [1, 4, 8]
const NAMES = populationsOf(0.5).map(({ name }) => name)

/** Every cell of a table draws its own numbers, so that none depends on the others. */
let cells = 0
const nextRandom = () => randomOf(SEED * 1_000_003 + cells++ * 7919)

interface Cell {
  readonly coverage: number
  readonly width: number
}

const lowest = { success: 1, passAt: 1, reward: 1, difference: 1 }

console.log(`${REPETITIONS} repetitions of each; seed ${SEED}; ${100 * CONFIDENCE} % intervals\n`)
success()
passAt(4, 8)
rewards()
differences()
console.log('lowest coverage anywhere:')
for (const [name, value] of Object.entries(lowest)) console.log(`  ${name}: ${percent(value)} %`)
console.log(`\n${(process.cpuUsage().user / 1e6).toFixed(0)} s of CPU. ${describeMachine()}`)

/** Coverage in percent, and the mean width as a multiple of the oracle's, which knows how much tasks differ. */
function success(): void {
  console.log('## Success rate: coverage in %, and in brackets the mean width as a multiple of the oracle’s\n')
  for (const rollouts of ROLLOUTS) {
    // With one rollout all populations of one mean look the same.
    const names = rollouts === 1 ? ['any'] : NAMES
    header(`${rollouts} rollout${rollouts > 1 ? 's' : ''}`, names)
    for (const mean of MEANS)
      for (const tasks of TASKS) {
        const row = populationsOf(mean)
          .slice(0, names.length)
          .map((population) => {
            const cell = simulate(mean, (random, known) => {
              const drawn = drawTasks(population, tasks, rollouts, random)
              return known(histogram(drawn), () => successRate(drawn)!)
            })
            lowest.success = Math.min(lowest.success, cell.coverage)
            return `${percent(cell.coverage)} (${(cell.width / oracleWidth(population, tasks, rollouts)).toFixed(2)})`
          })
        console.log(`| ${mean} | ${tasks} | ${row.join(' | ')} |`)
      }
    console.log()
  }
}

function passAt(k: number, rollouts: number): void {
  console.log(`## pass@${k} of ${rollouts} rollouts: coverage in %\n`)
  header('mean of p', NAMES)
  for (const mean of MEANS)
    for (const tasks of TASKS) {
      const row = populationsOf(mean).map((population) => {
        const { coverage } = simulate(1 - population.failAll(k), (random, known) => {
          const drawn = drawTasks(population, tasks, rollouts, random)
          return known(histogram(drawn), () => passRate(drawn, k)!)
        })
        lowest.passAt = Math.min(lowest.passAt, coverage)
        return percent(coverage)
      })
      console.log(`| ${mean} | ${tasks} | ${row.join(' | ')} |`)
    }
  console.log()
}

/** Rewards in steps of 0.1 around the task's own level, or 1 with a few zeros (or 0 with a few ones). */
function rewards(): void {
  console.log('## Mean reward within 0 to 1: coverage in %\n')
  const kinds = [
    'rubric, 1 rollout',
    'rubric, 4 rollouts',
    '0.9 with few zeros, 1 rollout',
    '0.1 with few ones, 1 rollout',
  ]
  header('mean', kinds)
  for (const mean of MEANS)
    for (const tasks of TASKS) {
      const row = kinds.map((kind, at) => {
        const { reward, truth } = at < 2 ? rubric(mean) : rare(at === 2 ? [0.9, 0] : [0.1, 1], Math.min(mean, 0.1))
        const { coverage } = simulate(truth, (random) => {
          const drawn = Array.from({ length: tasks }, () => reward(random, kind.includes('4') ? 4 : 1))
          return meanReward(drawn)!
        })
        lowest.reward = Math.min(lowest.reward, coverage)
        return percent(coverage)
      })
      console.log(`| ${mean} | ${tasks} | ${row.join(' | ')} |`)
    }
  console.log()
}

function rubric(mean: number) {
  const level = beta(mean, 4)
  // Rounded at random up or down, so that the mean stays what it is.
  const toStep = (value: number, random: Random) => Math.floor(value * 10 + random()) / 10
  const reward = (random: Random, rollouts: number) => {
    const own = level.draw(random)
    return Array.from({ length: rollouts }, () =>
      toStep(own === 0 || own === 1 ? own : drawBeta(random, 10 * own, 10 * (1 - own)), random),
    )
  }
  return { reward, truth: mean }
}

function rare([usual, odd]: readonly [number, number], share: number) {
  const reward = (random: Random) => [random() < share ? odd : usual]
  return { reward, truth: usual + share * (odd - usual) }
}

/** Both runs work on the same tasks. */
function differences(): void {
  console.log('## Difference of two runs, paired by task: coverage in %\n')
  const pairs = [
    { name: 'equal tasks, 1 rollout', rollouts: 1, draw: (a: number, b: number) => [a, b] },
    { name: 'equal tasks, 4 rollouts', rollouts: 4, draw: (a: number, b: number) => [a, b] },
    {
      name: 'B solves what A solves, and some more; 1 rollout',
      rollouts: 1,
      draw: (a: number, b: number, random: Random) => {
        const hardness = random()
        return [Number(hardness < a), Number(hardness < b)]
      },
    },
    {
      name: 'beta 1 each; 4 rollouts',
      rollouts: 4,
      draw: (a: number, b: number, random: Random) => [beta(a, 1).draw(random), beta(b, 1).draw(random)],
    },
  ]
  header(
    'A and B',
    pairs.map(({ name }) => name),
  )
  for (const [a, b] of [
    [0.5, 0.5],
    [0.5, 0.6],
    [0.9, 0.95],
    [0.98, 0.98],
    [0.02, 0.04],
  ] as const)
    for (const tasks of TASKS) {
      const row = pairs.map(({ rollouts, draw }) => {
        const { coverage } = simulate(b - a, (random, known) => {
          const counts = Array.from({ length: tasks }, () => {
            const [pa, pb] = draw(a, b, random) as [number, number]
            return [successes(pa, rollouts, random), successes(pb, rollouts, random)] as const
          })
          return known(tallied(counts.map(([solvedA, solvedB]) => solvedB - solvedA + rollouts)), () => {
            const run = (side: 0 | 1) => counts.flatMap((count, task) => outcomes(task, count[side], rollouts))
            return compareRuns(run(0), run(1)).success!
          })
        })
        lowest.difference = Math.min(lowest.difference, coverage)
        return percent(coverage)
      })
      console.log(`| ${a} and ${b} | ${tasks} | ${row.join(' | ')} |`)
    }
  console.log()
}

function successes(p: number, rollouts: number, random: Random): number {
  let count = 0
  for (let i = 0; i < rollouts; i++) if (random() < p) count++
  return count
}

function outcomes(task: number, solved: number, rollouts: number): Outcome[] {
  return Array.from({ length: rollouts }, (_, at) => ({
    taskId: `${task}`,
    status: 'success',
    grade: { reward: at < solved ? 1 : 0 },
  }))
}

type Known = (key: string, make: () => Interval) => Interval

function simulate(truth: number, once: (random: Random, known: Known) => Interval): Cell {
  const random = nextRandom()
  // Many draws have the same counts, and so the same interval.
  const seen = new Map<string, Interval>()
  const known: Known = (key, make) => {
    let interval = seen.get(key)
    if (!interval) seen.set(key, (interval = make()))
    return interval
  }
  let [held, width] = [0, 0]
  for (let i = 0; i < REPETITIONS; i++) {
    const { low, high } = once(random, known)
    if (low <= truth && truth <= high) held++
    width += high - low
    if (!(high > low)) throw new Error('an interval of zero width')
  }
  return { coverage: held / REPETITIONS, width: width / REPETITIONS }
}

function histogram(drawn: readonly (readonly boolean[])[]): string {
  return tallied(drawn.map((results) => results.filter(Boolean).length))
}

/** How often each whole number is there. */
function tallied(numbers: readonly number[]): string {
  const counts: number[] = []
  for (const number of numbers) counts[number] = (counts[number] ?? 0) + 1
  return counts.join()
}

/** Clopper and Pearson at the expected count, for as many independent trials as the tasks are worth. */
function oracleWidth(population: Population, tasks: number, rollouts: number): number {
  const { mean } = population
  const trials = (tasks * mean * (1 - mean)) / varianceOfTaskMean(population, rollouts)
  const low = (solved: number) =>
    quantile(
      { values: Float64Array.of(0, 1), counts: Float64Array.of(trials - solved + 1, solved) },
      (1 - CONFIDENCE) / 2,
    )
  return 1 - low(trials * (1 - mean)) - low(trials * mean)
}

function header(first: string, names: readonly string[]): void {
  console.log(`| ${first}: mean | tasks | ${names.join(' | ')} |\n|---|---:|${names.map(() => '---:').join('|')}|`)
}

function percent(share: number): string {
  return (100 * share).toFixed(1)
}
