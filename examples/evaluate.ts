// Which of two agents is better? Four rollouts of each task, graded, and compared. Run it with: node examples/evaluate.ts
import { defineAgent, Runners } from 'manyworlds'
import { compareRuns, describeRate, exactMatch, outcomeOf, summarizeOutcomes } from 'manyworlds/grade'

/** Adds numbers, and slips now and then: the more, the longer the sum. It never sees what a grader compares with. */
const adder = defineAgent({
  name: 'adder',
  params: { care: 0.9 },
  run: async (numbers: readonly number[], ctx) => {
    let sum = 0
    for (const number of numbers) sum += ctx.random() < ctx.params.care ? number : number + 1
    return sum
  },
})

const sums = Array.from({ length: 100 }, (_, i) => Array.from({ length: 1 + (i % 8) }, (_, j) => (i * 7 + j * 3) % 50))

async function evaluate(care: number) {
  const agent = adder.withParams({ care })
  const tasks = sums.map((numbers, i) =>
    agent.task(numbers, { id: `sum-${i}`, groundTruth: numbers.reduce((sum, number) => sum + number, 0) }),
  )
  const responses = await Runners.runTask(tasks, { rollouts: 4, grade: exactMatch(), workerNum: 2, store: false })
  return [...responses.values()].map((response) => outcomeOf(response))
}

const [hasty, careful] = [await evaluate(0.9), await evaluate(0.98)]
for (const [name, outcomes] of Object.entries({ hasty, careful })) {
  const { success, passAt, rollouts, tasks } = summarizeOutcomes(outcomes)
  console.log(`${name}: ${describeRate(success!)} of ${rollouts} rollouts of ${tasks} tasks solved`)
  console.log(`${name}: at least one of four rollouts is right for ${describeRate(passAt[4]!)}`)
}
console.log(compareRuns(hasty, careful, { names: ['hasty', 'careful'] }).verdict)
