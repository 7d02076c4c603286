// Trains a small language model to add: `npx manyworlds train examples/chain-sum.ts`, or `npx node examples/chain-sum.ts`. It takes
// half an hour on two busy cores, after `npx manyworlds setup lora`, which downloads PyTorch.
//
// The beginning of each answer is given ("67 + 75 ="), so that the model writes a number before and after training: what gets better can only be whether
// it is right. It is tested on sums whose operands it was never trained with, on sums of another size, and on products, which it should not unlearn.
import { llmAgent } from 'manyworlds/agents'
import { compareRuns, outcomeOf } from 'manyworlds/grade'
import { RunFile } from 'manyworlds/runs'
import { DistributedTrainingPipeline, lora } from 'manyworlds/train'
import { smollm2 } from './chain-sum/smollm2.ts'
import { chainSums, type Problem, products, smallSums, some } from './chain-sum/sums.ts'

const adder = llmAgent({
  name: 'adder',
  policy: lora({ name: 'smollm2', base: smollm2(), rank: 16, alpha: 32 }),
  prompt: ({ question, begun }: Problem) => [
    { role: 'user', content: question },
    { role: 'assistant', content: begun },
  ],
  maxOutputTokens: 5,
  grade: ({ answer, groundTruth }) => Number(numberIn(answer)) === groundTruth,
})

const sums = chainSums()

export const pipeline = new DistributedTrainingPipeline({
  agent: adder,
  tasks: {
    train: sums.train,
    validation: some(sums.validation, 80),
    test: [...some(sums.test, 240), ...some(smallSums(), 200)],
  },
  offTask: some(products(), 200),
  algorithm: { advantages: { name: 'grpo', eps: 1e-4 }, loss: { name: 'clip', kl: 0.02 }, lr: 1e-4, clipNorm: 1 },
  ...{ rollouts: 8, tasksPerUpdate: 8, tasksPerEpoch: 160, epochs: 3, seed: 1 },
  evaluate: { mode: 'greedy', testRollouts: 1 },
  progress: true,
})

if (import.meta.main)
  for await (const { id, epoch, successRate, validation, offTask, test, alarms } of pipeline.train()) {
    const figures = { training: successRate, validation: validation?.success?.value, products: offTask?.success?.value }
    const words = Object.entries(figures).map(([what, share]) => `${what} ${percent(share)}`)
    console.log(`epoch ${epoch}: ${words.join(', ')}`)
    for (const alarm of alarms) console.log(`  ! ${alarm}`)
    if (test) report(id, test.version)
  }

/** Each kind of problem, before and after, paired by problem: the runs of the test and of the products are in the store. */
function report(id: string, version: number): void {
  const runs = (of: number) =>
    ['test', 'off-task'].map((split) => RunFile.open(`${id}.v${String(of).padStart(5, '0')}.${split}`))
  const [before, after] = [runs(0), runs(version)].map((files) => files.flatMap((file) => [...file.responses()]))
  console.log(`\nversion ${version} beside the first, on problems that were not trained:`)
  for (const kind of ['chain_sum', 'two digits and one', 'product']) {
    const [a, b] = [before!, after!].map((responses) => responses.filter((one) => one.id.startsWith(`${kind} `)))
    const { success } = compareRuns(a!.map(outcomeOf), b!.map(outcomeOf))
    const numbers = b!.filter(({ answer }) => numberIn(answer) !== undefined).length / b!.length
    const { a: was, b: is, value, low, high } = success!
    const change = `${signed(value)} [${signed(low)}, ${signed(high)}]`
    console.log(`  ${kind.padEnd(20)} ${was.toFixed(3)} → ${is.toFixed(3)}  ${change}  numbers ${percent(numbers)}`)
  }
}

/** The first number counts, whatever follows. */
function numberIn(answer: unknown): string | undefined {
  return /^\s*(-?\d+)/.exec(String(answer))?.[1]
}

function signed(value: number): string {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`
}

function percent(share: number | null | undefined): string {
  return share == null ? 'none' : `${(100 * share).toFixed(1)} %`
}
